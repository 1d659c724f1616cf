package wasm

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// hexReader decodes the corpus's notation for what an assembler refuses to
// write:
//
//	00 61      bytes
//	"memory"   the bytes of a text, without escapes; also 'with "quotes"'
//	u70000     a number as unsigned LEB128
//	[ … ]      what is inside, preceded by its length
//	xN{ … }    what is inside, N times
//	;;         a comment, up to the end of the line
type hexReader struct{ text string }

func decodeHex(text string) ([]byte, error) {
	r := &hexReader{text}
	out, err := r.until("")
	if err != nil {
		return nil, fmt.Errorf("%w, before %.40q", err, r.text)
	}
	return out, nil
}

// until decodes up to a closing mark, or to the end.
func (r *hexReader) until(closing string) (out []byte, err error) {
	for {
		word := r.word()
		if word == closing {
			return out, nil
		}
		var part []byte
		switch {
		case word == "":
			return nil, fmt.Errorf("%s is missing", closing)
		case word == "[":
			part, err = r.until("]")
			part = join(uleb(uint64(len(part))), part)
		case word[0] == '"', word[0] == '\'':
			part = []byte(word[1:])
		case word[0] == 'u':
			var n uint64
			n, err = strconv.ParseUint(word[1:], 10, 64)
			part = uleb(n)
		case word[0] == 'x' && strings.HasSuffix(word, "{"):
			part, err = r.repeated(word[1 : len(word)-1])
		default:
			part, err = hex.DecodeString(word)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, part...)
	}
}

func (r *hexReader) repeated(count string) ([]byte, error) {
	n, err := strconv.Atoi(count)
	if err != nil {
		return nil, err
	}
	part, err := r.until("}")
	if err != nil {
		return nil, err
	}
	if n < 0 || n*len(part) > 64<<20 {
		return nil, fmt.Errorf("x%d{…} of %d bytes is too much", n, len(part))
	}
	return bytes.Repeat(part, n), nil
}

// word returns the next word, or "" at the end. A text keeps its first quote.
func (r *hexReader) word() string {
	for {
		r.text = strings.TrimLeft(r.text, " \t\r\n")
		if !strings.HasPrefix(r.text, ";;") {
			break
		}
		_, r.text, _ = strings.Cut(r.text, "\n")
	}
	n := strings.IndexAny(r.text, " \t\r\n[]{}\"';")
	switch {
	case n == 0 && (r.text[0] == '"' || r.text[0] == '\''):
		if n = strings.IndexByte(r.text[1:], r.text[0]); n < 0 {
			break
		}
		word := r.text[:n+1]
		r.text = r.text[n+2:]
		return word
	case n == 0:
		n = 1
	case n > 0 && r.text[n] == '{':
		n++
	}
	if n < 0 {
		n = len(r.text)
	}
	word := r.text[:n]
	r.text = r.text[n:]
	return word
}

func TestHexNotation(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want, fault string }{
		{"00 61 ;; a comment } \n 73", "\x00as", ""},
		{`01[ "ab" u300 ]ff`, "\x01\x04ab\xac\x02\xff", ""},
		{`x3{ 01 x2{02} }`, "\x01\x02\x02\x01\x02\x02\x01\x02\x02", ""},
		{`'a"b' "c'd"`, `a"bc'd`, ""},
		{"[ [ ] [01] ]", "\x03\x00\x01\x01", ""},
		{"", "", ""},
		{"0", "", "odd length"},
		{"zz", "", "invalid byte"},
		{"[ 01", "", "] is missing"},
		{"01 ]", "", "invalid byte"},
		{"xq{01}", "", "invalid syntax"},
		{"x99999999{ 01 }", "", "too much"},
		{`"no end`, "no end", ""},
	}
	for _, tt := range tests {
		got, err := decodeHex(tt.text)
		if tt.fault == "" && (err != nil || string(got) != tt.want) {
			t.Errorf("decodeHex(%q) = %q, %v; want %q", tt.text, got, err, tt.want)
		}
		if tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)) {
			t.Errorf("decodeHex(%q) = %q, %v; want a fault with %q", tt.text, got, err, tt.fault)
		}
	}
}

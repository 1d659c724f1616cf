package gen

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
)

// canonical writes JSON with ordered members, without members that are null, and each
// number in one form: whole ones in all their digits, others as the shortest text of
// their 64 bits.
func canonical(t testing.TB, text string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Errorf("%.200s: %v", text, err)
		return text
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(plain(v, "")); err != nil {
		t.Error(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// floats are the fields of type Float.
var floats = map[string]bool{"ratio": true, "share": true, "i": true}

func plain(v any, field string) any {
	switch v := v.(type) {
	case map[string]any:
		for name, part := range v {
			if part == nil {
				delete(v, name)
				continue
			}
			v[name] = plain(part, name)
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i], "")
		}
	case json.Number:
		return json.Number(number(string(v), floats[field]))
	}
	return v
}

func number(text string, float bool) string {
	if n, whole := new(big.Int).SetString(text, 10); whole && !float {
		return n.String()
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && math.IsInf(f, 0):
		return text
	case f == math.Trunc(f) && math.Abs(f) < 1e25:
		n, _ := big.NewFloat(f).Int(nil)
		return n.String()
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

package wire_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"skep/host/internal/gateway/wire"
)

// TestCanonical (U-020, U-025, D-U5): both forms of texts in which they differ.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, rfc8785, asSent string }{
		{` { "b" : [ 1 , true ] , "a" : null } `, `{"a":null,"b":[1,true]}`, ""},
		{`{"a":{"z":1,"y":{}},"":[]}`, `{"":[],"a":{"y":{},"z":1}}`, ""},
		{`{"n":[1.0,1e21,1E3,-0,-0.0,1e-06,0.1,123456789012345678901]}`, `{"n":[1,1e+21,1000,0,0,0.000001,0.1,123456789012345680000]}`, `{"n":[1.0,1e21,1E3,-0,-0.0,1e-06,0.1,123456789012345678901]}`},
		{`["\u00e4\/\u0007\n\u001F\ud83d\ude00"]`, "[\"ä/\\u0007\\n\\u001f😀\"]", `["\u00e4\/\u0007\n\u001F\ud83d\ude00"]`},
		{"{\"\uff01\":1,\"\U0001f600\":2,\"z\":3}", "{\"z\":3,\"\U0001f600\":2,\"\uff01\":1}", "{\"z\":3,\"\uff01\":1,\"\U0001f600\":2}"},
		{`{"\u0062":1,"a":2}`, `{"a":2,"b":1}`, `{"a":2,"\u0062":1}`},
		{`"text"`, `"text"`, ""},
		{`-5`, `-5`, ""},
	} {
		for form, want := range map[wire.Form]string{wire.RFC8785: c.rfc8785, wire.AsSent: c.asSent} {
			if want == "" {
				want = c.rfc8785
			}
			got, err := wire.Canonical([]byte(c.text), form, 8)
			if err != nil || string(got) != want {
				t.Errorf("form %d of %s: %s, %v; want %s", form, c.text, got, err, want)
			}
		}
	}
}

// TestCanonicalStrings: what ends a string or stands out in it is found at each place, though
// eight bytes are looked at at once.
func TestCanonicalStrings(t *testing.T) {
	t.Parallel()
	for _, one := range []string{``, `\"`, `\\`, `\u0041`, " ", "!", "#", "[", "]", "\x1f", "\x00", "\n", "\x7f", "\u00a2", "\u00dc", "\U0001f600", `"`, `\`} {
		for before := range 18 {
			for after := range 10 {
				text := []byte(`["` + strings.Repeat("x", before) + one + strings.Repeat("y", after) + `"]`)
				got, err := wire.Canonical(text, wire.RFC8785, 8)
				var want, value [1]string
				if json.Unmarshal(text, &want) != nil {
					if err == nil {
						t.Errorf("%q is taken as %q", text, got)
					}
					continue
				}
				if err != nil || json.Unmarshal(got, &value) != nil || value != want {
					t.Errorf("%q: %q, %v", text, got, err)
				}
			}
		}
	}
}

// TestCanonicalEscapes: escapes that a form keeps and escapes that it changes, beside each other, in
// values and names.
func TestCanonicalEscapes(t *testing.T) {
	t.Parallel()
	all := []string{``, `\"`, `\\`, `\/`, `\b`, `\n`, `\u0041`, `\u000a`, `\u001F`, `\u00e4`, `\u2028`, `\ud83d\ude00`, "\u00e4", "xxxxxxxx"}
	for _, one := range all {
		for _, two := range all {
			for _, three := range all {
				text := one + two + three
				compareWithLibrary(t, []byte(`{"`+text+`":"`+text+`","!":1,"a":["`+three+text+`"],"n":2}`))
			}
		}
	}
}

// TestAppendText (U-020): the library of RFC 8785 writes the same of what package json writes, with
// what is escaped before, at and behind each border of the pieces that are looked at.
func TestAppendText(t *testing.T) {
	t.Parallel()
	for _, one := range []string{"", `"`, `\`, "\n", "\x00", "\x1f", "\x7f", "<&>", "\u2028", "\U0001f600", "\xff", "\xed\xa0\x80", "\"\"", "\n\x01\\"} {
		for _, before := range []int{0, 1, 7, 8, 9, 254, 255, 256, 257, 511, 512, 513} {
			for _, after := range []int{0, 1, 8, 255, 256} {
				compareText(t, strings.Repeat("x", before)+one+strings.Repeat("y", after)+one)
			}
		}
	}
}

func compareText(t *testing.T, text string) {
	t.Helper()
	plain, err := json.Marshal([]string{text})
	if err != nil {
		t.Fatal(err)
	}
	want, err := jcs.Transform(plain)
	if got := "[" + string(wire.AppendText(nil, text)) + "]"; err != nil || got != string(want) {
		t.Fatalf("%q:\nhere    %s\nlibrary %s (%v)", text, got, want, err)
	}
}

// FuzzAppendText looks for a text that the library writes in another way.
func FuzzAppendText(f *testing.F) {
	for _, text := range []string{"", "a\"b\\", "\xff\n\u2028", strings.Repeat("x", 300) + "\x00"} {
		f.Add(text)
	}
	f.Fuzz(compareText)
}

// TestAppendObject: members are in the order of RFC 8785, and a value that is not one of JSON, or is
// nested too deep, is refused.
func TestAppendObject(t *testing.T) {
	t.Parallel()
	type members = map[string]json.RawMessage
	for want, all := range map[string]members{
		`{}`: nil,
		"{\"a\":[1],\"\U0001f600\":null,\"\uff01\":{\"a\":2,\"b\":\"<\"}}": {"\uff01": json.RawMessage(` { "b" : "\u003c" , "a" : 2 } `), "\U0001f600": nil, "a": json.RawMessage("[1.0]")},
		`has the member "\xff", which is not valid UTF-8`:                  {"\xff": json.RawMessage("1")},
		`is not JSON`:                  {"a": json.RawMessage(`1,"b":2`)},
		`is nested too deep`:           {"a": json.RawMessage("[[]]")},
		`has the member "b" twice`:     {"a": json.RawMessage(`{"b":1,"b":1}`)},
		`has half of a surrogate pair`: {"a": json.RawMessage(`"\ud800"`)},
	} {
		got, err := wire.AppendObject(nil, all, 2)
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != want {
			t.Errorf("%v: %s, want %s", all, got, want)
		}
	}
}

// TestCanonicalWithout (U-020): only the outermost object loses a member, and a member
// that is left out still counts as one.
func TestCanonicalWithout(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"z":{"sig":1},"sig":"x","a":2}`: `{"a":2,"z":{"sig":1}}`,
		`{"a":1,"sig":"x"}`:               `{"a":1}`,
		`{"sig":"x"}`:                     `{}`,
		`{"s\u0069g":"x","b":1}`:          `{"b":1}`,
		`[{"sig":1}]`:                     `[{"sig":1}]`,
		`{"sig":1,"sig":2}`:               `has the member "sig" twice`,
	} {
		got, err := wire.Canonical([]byte(text), wire.RFC8785, 8, "sig")
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestCanonicalRefuses (G-057, V-U10, V-U11): a text with no or several readings has no
// canonical form.
func TestCanonicalRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                "is not JSON",
		"{} {}":                           "is not JSON",
		`{"a":1,}`:                        "is not JSON",
		`{"a"}`:                           "is not JSON",
		`{a:1}`:                           "is not JSON",
		`{"a":1 "b":2}`:                   "is not JSON",
		`[1 2]`:                           "is not JSON",
		`[,]`:                             "is not JSON",
		`[1,]`:                            "is not JSON",
		`01`:                              "is not JSON",
		`1.`:                              "is not JSON",
		`.5`:                              "is not JSON",
		`1e`:                              "is not JSON",
		`--1`:                             "is not JSON",
		`nul`:                             "is not JSON",
		`nullx`:                           "is not JSON",
		"\"\n\"":                          "is not JSON",
		`"\x"`:                            "is not JSON",
		`"\u12g4"`:                        "is not JSON",
		`"\u12`:                           "is not JSON",
		`"\`:                              "is not JSON",
		`"a`:                              "is not JSON",
		"{\x00}":                          "is not JSON",
		"\ufeff{}":                        "is not JSON",
		"\"\xff\"":                        "is not valid UTF-8",
		"\"\xed\xa0\x80\"":                "is not valid UTF-8",
		`"\ud800"`:                        "has half of a surrogate pair",
		`"\ud800\u0041"`:                  "has half of a surrogate pair",
		`"\udc00\ud800"`:                  "has half of a surrogate pair",
		`{"\ud800":1}`:                    "has half of a surrogate pair",
		`{"to":1,"b":2,"to":3}`:           `has the member "to" twice`,
		`{"to":1,"t\u006f":3}`:            `has the member "to" twice`,
		`[{"a":{"b":1,"b":1}}]`:           `has the member "b" twice`,
		`1e400`:                           "has the number 1e400, which is too large for a double",
		strings.Repeat("[", 9) + "]":      "is nested too deep",
		strings.Repeat(`{"a":`, 9) + "1}": "is nested too deep",
	} {
		if got, err := wire.Canonical([]byte(text), wire.RFC8785, 8); err == nil || err.Error() != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
	if _, err := wire.Canonical([]byte(strings.Repeat("[", 8)+strings.Repeat("]", 8)), wire.AsSent, 8); err != nil {
		t.Error(err)
	}
}

// TestCanonicalAsLibrary (U-024): the library of RFC 8785 writes the same of random texts,
// and a form is its own form.
func TestCanonicalAsLibrary(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		compareWithLibrary(t, randomJSON(r, 4))
	}
}

func compareWithLibrary(t *testing.T, text []byte) {
	t.Helper()
	got, err := wire.Canonical(text, wire.RFC8785, 64)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	want, err := jcs.Transform(text)
	if err != nil || string(got) != string(want) {
		t.Fatalf("%s:\nhere    %s\nlibrary %s (%v)", text, got, want, err)
	}
	for _, form := range []wire.Form{wire.RFC8785, wire.AsSent} {
		once, err := wire.Canonical(text, form, 64)
		twice, err2 := wire.Canonical(once, form, 64)
		if err != nil || err2 != nil || string(once) != string(twice) {
			t.Fatalf("form %d of %s: %s, then %s (%v, %v)", form, text, once, twice, err, err2)
		}
	}
}

// randomJSON writes an object with unsorted members, white space and escapes.
func randomJSON(r *rand.Rand, depth int) []byte {
	out := []byte{'{'}
	for i := range r.IntN(6) {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = append(out, randomString(r, fmt.Sprintf("%d", i))...)
		out = append(out, "\t:\n"...)
		switch kind := r.IntN(6); {
		case kind == 0 && depth > 0:
			out = append(out, randomJSON(r, depth-1)...)
		case kind == 1 && depth > 0:
			out = append(append(append(out, '['), randomJSON(r, depth-1)...), ", 1 ]"...)
		case kind == 2:
			out = append(out, randomNumber(r)...)
		case kind == 3:
			out = append(out, []string{"true", "false", "null"}[r.IntN(3)]...)
		default:
			out = append(out, randomString(r, "")...)
		}
	}
	return append(out, '}')
}

func randomString(r *rand.Rand, suffix string) string {
	letters := []rune("aZ\"\\/\b\f\n\r\t\x00\x1f\x7fäß\u2028\ue000\ufb33\uff01😀𐀀")
	text := ""
	for range r.IntN(6) {
		text += string(letters[r.IntN(len(letters))])
	}
	raw, _ := json.Marshal(text + suffix)
	return string(raw)
}

func randomNumber(r *rand.Rand) string {
	switch r.IntN(4) {
	case 0:
		return fmt.Sprint(r.Int64() >> r.IntN(63))
	case 1:
		return fmt.Sprintf("%e", r.NormFloat64()*math.Pow(10, float64(r.IntN(60)-30)))
	case 2:
		f := math.Float64frombits(r.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return "-0.0"
		}
		return fmt.Sprintf("%g", f)
	}
	return fmt.Sprintf("%.3f", r.Float64())
}

// FuzzCanonical looks for a text of which the library has another form, and for one that
// is refused without a reason.
func FuzzCanonical(f *testing.F) {
	for _, text := range []string{`{"b":1,"a":[{}]}`, `{"\uD83D\uDE00":1e21,"\uFF01":-0}`, `"\ud800"`, `[1.50E+2,"\/"]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := wire.Canonical([]byte(text), wire.RFC8785, 64)
		if err == nil {
			if strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") {
				compareWithLibrary(t, []byte(text))
			}
			if !json.Valid([]byte(text)) {
				t.Fatalf("%q is taken and is not JSON", text)
			}
		} else if err.Error() == "is not JSON" && json.Valid([]byte(text)) {
			t.Fatalf("%q is JSON and refused", text)
		}
	})
}

// BenchmarkCanonical compares the forms of an envelope of 4 KiB with its plain encoding:
// decoding, sorting and encoding.
func BenchmarkCanonical(b *testing.B) {
	text := []byte(`{"to":["did:web:calc.example"],"sig":"` + strings.Repeat("x", 86) + `","id":"urn:uuid:7d3e3f0e-6b2f-4a5d-9b1e-1c2d3e4f5a6b","ts":"2025-07-10T10:00:00Z","from":"did:web:client.example","intent":"ask","delta_window":64,"body":{"type":"text/markdown","content":"` +
		strings.Repeat(`A line of text, \"quoted\".\n`, 130) + `","encoding":"utf-8","compression":"none"},"ext":{"x-trace":"b3:1","x-mail":{"task_id":"t","n":1}}}`)
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			var value map[string]any
			if err := json.Unmarshal(text, &value); err != nil {
				b.Fatal(err)
			}
			if _, err := json.Marshal(value); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		for b.Loop() {
			if _, err := jcs.Transform(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	for form, name := range []string{"rfc8785", "as_sent"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := wire.Canonical(text, wire.Form(form), 64, "sig"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package mcp

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzPlain checks that a document keeps its meaning, and that anything else stays as it
// is.
func FuzzPlain(f *testing.F) {
	for _, seed := range []string{`{"a\u0062":["\"\\\/\ud800",1e400,"<&>"]}`, `"\`, `"a\"`, `\"`, "\"\x80\\n\"", `{"a":"b`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		out := unescapeStrings(raw)
		if !json.Valid(raw) {
			return
		}
		if was, is := decoded(t, raw), decoded(t, out); !reflect.DeepEqual(was, is) {
			t.Errorf("%q became %q", raw, out)
		}
	})
}

func decoded(t *testing.T, raw []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return v
}

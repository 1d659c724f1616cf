package signature_test

import (
	"encoding/json"
	"testing"

	"skep/host/internal/peer/signature"
)

// FuzzVerify looks for wrappers that are taken without a signature over them, or
// that cannot be looked at.
func FuzzVerify(f *testing.F) {
	k, way := signature.NewKey(), signature.Route{Target: "depot"}
	f.Add(plain, "")
	f.Add(plain, "eyJhbGciOiJFZERTQSJ9..AAAA")
	f.Add(`{"metadata":{"skep_signature":"a..b"}}`, "a..b")
	f.Add(`{"metadata":{"skep_signature":{}},"a":[[[]]]}`, "x")
	f.Fuzz(func(t *testing.T, wrapper, signature string) {
		// The key has signed nothing yet, so nothing counts.
		if err := k.PublicKey().Verify([]byte(wrapper), way, now); err == nil {
			t.Fatalf("taken: %s", wrapper)
		}
		own, err := k.Sign([]byte(wrapper), way, now)
		if err != nil {
			return
		}
		if signature == own {
			t.Skip("it was guessed")
		}
		for _, c := range []struct {
			signature string
			ok        bool
		}{{own, true}, {signature, false}} {
			if err := k.PublicKey().Verify([]byte(withRaw(t, wrapper, c.signature)), way, now); (err == nil) != c.ok {
				t.Fatalf("%s of %s: %v", c.signature, wrapper, err)
			}
		}
	})
}

// withRaw puts a signature into a wrapper's metadata and changes nothing else.
func withRaw(t *testing.T, wrapper, text string) string {
	t.Helper()
	var w, meta map[string]json.RawMessage
	if err := json.Unmarshal([]byte(wrapper), &w); err != nil {
		t.Fatalf("it was signed: %v", err)
	}
	if raw, ok := w["metadata"]; ok {
		if err := json.Unmarshal(raw, &meta); err != nil {
			t.Fatalf("it was signed: %v", err)
		}
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	meta[signature.Member], _ = json.Marshal(text)
	w["metadata"], _ = json.Marshal(meta)
	raw, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

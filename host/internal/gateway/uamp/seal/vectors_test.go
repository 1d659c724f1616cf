package seal_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"skep/host/internal/gateway/uamp/seal"
)

// vector is an envelope that another program has signed. Sum is the hash that the
// signature covers; it is empty for one that must not count.
type vector struct {
	By, Alg, Sum string
	Key          json.RawMessage
	Envelope     string
}

// TestForeignSignatures (V-U02, V-U03, V-U06, U-025, U-026, D-U5, D-U15): envelopes that
// libraries of other languages have signed in either canonical form, and one whose body no
// hash covers.
func TestForeignSignatures(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../../spec/gateways/uamp/vectors/signatures-*.json")
	if err != nil || len(files) != 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	algorithms := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list []vector
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		for i, v := range list {
			k, err := seal.ParseJWK(vectorID, v.Key)
			if err != nil {
				t.Fatal(err)
			}
			s := read(t, []byte(v.Envelope))
			algorithms[v.Alg]++
			if _, err := seal.Verify(s.Sig, s.Sums, []seal.PublicKey{k}); (err == nil) != (v.Sum != "") {
				t.Errorf("%s, %d by %s: %v", filepath.Base(file), i, v.By, err)
			}
			if sums := slices.Collect(s.Sums); v.Sum != "" && !slices.ContainsFunc(sums, func(sum [32]byte) bool { return hex.EncodeToString(sum[:]) == v.Sum }) {
				t.Errorf("%s, %d by %s: %x has no %s", filepath.Base(file), i, v.By, sums, v.Sum)
			}
		}
	}
	if algorithms["EdDSA"] < 12 || algorithms["ES256"] < 12 {
		t.Errorf("%v", algorithms)
	}
}

package schema

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// TestLint: every construct that the library would misread is refused. The
// shipped schemas pass in Load.
func TestLint(t *testing.T) {
	t.Parallel()
	other := `{"$id":"skep://test/other","definitions":{"a":{"type":"string"}}}`
	for _, tc := range []struct{ name, in, want string }{
		{"all that is allowed", `{"type":["object","null"],"required":["a"],"additionalProperties":false,
			"properties":{"a":{"$ref":"other#/definitions/a"},"unevaluatedProperties":{"enum":["x"]}},
			"allOf":[{"if":{"required":["a"]},"then":{"properties":{"a":{"const":"x"}}}}]}`, ""},
		{"newer keyword", `{"items":{"prefixItems":[]}}`, "#/items/prefixItems: is not a keyword"},
		{"newer keyword", `{"unevaluatedProperties":false}`, "is not a keyword"},
		{"newer keyword", `{"dependentRequired":{}}`, "is not a keyword"},
		{"newer keyword", `{"$defs":{}}`, "is not a keyword"},
		{"newer keyword", `{"properties":{"a":{"$anchor":"x"}}}`, "#/properties/a/$anchor: is not a keyword"},
		{"newer keyword", `{"allOf":[{},{"$dynamicRef":"#x"}]}`, "#/allOf/1/$dynamicRef: is not a keyword"},
		{"beside a $ref", `{"properties":{"a":{"$ref":"other#/definitions/a","minLength":1}}}`, "$ref must stand alone"},
		{"remote $ref", `{"items":{"$ref":"http://127.0.0.1/x#/definitions/a"}}`, "leads to no definition"},
		{"dangling $ref", `{"items":{"$ref":"#/definitions/a"}}`, "leads to no definition"},
		{"$ref to no definition", `{"items":{"$ref":"#"}}`, "leads to no definition"},
		{"$ref to a part", `{"items":{"$ref":"other#/definitions/a/type"}}`, "leads to no definition"},
		{"$ref is no text", `{"items":{"$ref":1}}`, "leads to no definition"},
		{"$ref is no URI", `{"items":{"$ref":"%"}}`, "no URI"},
		{"unknown format", `{"items":{"format":"email"}}`, "has no checker"},
		{"number", `{"items":{"type":"integer"}}`, "numbers are not compared"},
		{"number", `{"const":1}`, "strings only"},
		{"number", `{"minimum":1}`, "is not a keyword"},
		{"items is a list", `{"items":[{}]}`, "must be an object"},
		{"properties is a list", `{"properties":[{}]}`, "must be an object"},
		{"allOf is an object", `{"allOf":{}}`, "must be an array"},
		{"open by schema", `{"additionalProperties":{"type":"string"}}`, "must be false"},
		{"inner $id", `{"items":{"$id":"x"}}`, "belongs to the root"},
		{"inner definitions", `{"items":{"definitions":{}}}`, "belongs to the root"},
		{"fault in a definition", `{"definitions":{"a":{"not":{}}}}`, "#/definitions/a/not: is not a keyword"},
	} {
		var doc, second map[string]any
		if err := json.Unmarshal([]byte(tc.in), &doc); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(other), &second); err != nil {
			t.Fatal(err)
		}
		doc["$id"] = "skep://test/root"
		err := lint(doc, second)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: lint(%s) = %v, want %q", tc.name, tc.in, err, tc.want)
		}
	}
	if err := lint(map[string]any{"$id": "core.json"}); err == nil {
		t.Error("a relative $id passed")
	}
}

// TestCompileNeedsEverything: what the lint lets through compiles without help.
func TestCompileNeedsEverything(t *testing.T) {
	t.Parallel()
	_, err := compile(map[string]any{"$id": "skep://test/root", "items": map[string]any{"$ref": "skep://nowhere/x#/definitions/a"}})
	if err == nil {
		t.Error("a dangling $ref compiled")
	}
}

// TestFormats holds the rules of text against other implementations of them.
func TestFormats(t *testing.T) {
	t.Parallel()
	printable := regexp.MustCompile(`^[\pL\pM\pN\pP\pS ]*$`)
	rnd := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("0123456789abcdefABCDEF-{}gG \n\u00a0\u2028é漢\U0001f40b\u200d\u0301٣½∑\ue000")
	for range 20_000 {
		s := []byte("8d2f6b0e-6f0e-4a39-9F5E-0d2c6a1c7b11")
		for range rnd.IntN(3) {
			s[rnd.IntN(len(s))] = byte(alphabet[rnd.IntN(28)])
		}
		_, err := uuid.Parse(string(s))
		if got := formats["uuid"].valid(string(s)); got != (err == nil) {
			t.Fatalf("uuid %q: %v, other implementation says %v", s, got, err)
		}
		var r []rune
		for range rnd.IntN(4) {
			r = append(r, alphabet[rnd.IntN(len(alphabet))])
		}
		if got, want := formats["printable"].valid(string(r)), printable.MatchString(string(r)); got != want {
			t.Fatalf("printable %q: %v, other implementation says %v", string(r), got, want)
		}
	}
	if !formats["uuid"].IsFormat(3) || formats["date-time"].IsFormat("2026-03-01") {
		t.Error("IsFormat is wrong about a number or about a bare date")
	}
}

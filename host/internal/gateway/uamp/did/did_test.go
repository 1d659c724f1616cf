package did_test

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/seal"
)

// TestParse (V-U16, U-030, U-032, D-U22): where documents are, and what is no identifier.
func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"did:web:h.example":                                   "https://h.example/.well-known/did.json",
		"did:web:h.example%3A8443":                            "https://h.example:8443/.well-known/did.json",
		"did:web:h.example:agents:prod:calc":                  "https://h.example/agents/prod/calc/did.json",
		"did:web:h.example%3a8443:a":                          "https://h.example:8443/a/did.json",
		"did:web:h.example:a%20b":                             "",
		"did:web:client":                                      "https://client/.well-known/did.json",
		"did:web:":                                            "",
		"did:web:h.example:":                                  "",
		"did:web:h.example::a":                                "",
		"did:web:h.example:..":                                "",
		"did:web:h.example:%2e%2e":                            "",
		"did:web:h.example:a%2Fb":                             "",
		"did:web:h.example:a%5Cb":                             "",
		"did:web:h.example:a%3Fb":                             "",
		"did:web:h.example/a":                                 "",
		"did:web:h.example#k":                                 "",
		"did:web:user@h.example":                              "",
		"did:web:h.example%3A":                                "",
		"did:web:h.example%3A0":                               "",
		"did:web:h.example%3A65535":                           "https://h.example:65535/.well-known/did.json",
		"did:web:h.example%3A65536":                           "",
		"did:web:h.example%3A99999":                           "",
		"did:web:h.example%3A+443":                            "",
		"did:web:h.example%3A8443%3A1":                        "",
		"did:web:127.0.0.1":                                   "",
		"did:web:2130706433":                                  "",
		"did:web:[%3A%3A1]":                                   "",
		"did:web:h..example":                                  "",
		"did:web:h.example:" + strings.Repeat("a:", 20) + "a": "",
		"did:web:" + strings.Repeat("a", 600):                 "",
		"did:example:123":                                     "",
		"https://h.example":                                   "",
		"":                                                    "",
	} {
		id, err := did.Parse(text)
		if got := id.URL(); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	id, err := did.Web("h.example:8443", "agents", "prod", "calc")
	if err != nil || id.String() != "did:web:h.example%3A8443:agents:prod:calc" || id.Host() != "h.example:8443" || fmt.Sprint(id.Path()) != "[agents prod calc]" {
		t.Errorf("%s, %v", id, err)
	}
	for text, want := range map[string]string{
		"did:web:h.example%3A99999": `its port "99999" is not a number from 1 to 65535`, "did:web:h..example": `its host "h..example" is not a name`,
		"did:web:h.example:..": `its path has a part ".."`, "did:example:123": "it is neither a did:web nor a did:key",
		"did:key:z6MkeTG3bFFSLYVU7VqhgZxqr6YzpaGrQtFMh1uvqGy1vDnP": "low-order point",
	} {
		if _, err := did.Parse(text); !errors.Is(err, did.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, part := range []string{"a:b", "a/b", "..", "", "ä", "a b"} {
		if id, err := did.Web("h.example", "agents", part); err == nil {
			t.Errorf("%q is a part of %s", part, id)
		}
	}
	if _, err := did.Parse("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"); err != nil {
		t.Error(err)
	}
	if _, err := did.Parse("did:key:z6Mk"); err == nil {
		t.Error("a did:key without a key is taken")
	}
}

const subject = "did:web:lab.example"

// newKey is one of two keys.
func newKey(t *testing.T, id string, seed byte) seal.PublicKey {
	t.Helper()
	k, err := seal.NewKey(id, ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), 32))))
	if err != nil {
		t.Fatal(err)
	}
	return k.Public()
}

// TestDocument (U-030, U-033): a document of ours reads as it was.
func TestDocument(t *testing.T) {
	t.Parallel()
	a, b := newKey(t, subject+"#a", 'a'), newKey(t, subject+"#b", 'b')
	d := did.Document{ID: subject, Keys: []seal.PublicKey{a, b}, Services: []did.Service{{subject + "#messages", "UAMPMessages", "https://lab.example/v1/messages"}}}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := did.ReadDocument(subject, text)
	if err != nil || len(got.Keys) != 2 || !got.Keys[1].Equal(b) || !got.HasKey(a.ID) || got.HasKey("#a") || got.Service("UAMPMessages") != "https://lab.example/v1/messages" || got.Service("x") != "" {
		t.Errorf("%s\n%+v, %v", text, got, err)
	}
}

// TestReadDocument (V-U16, U-027, U-030): of a document count the subject's own keys that
// may sign for it.
func TestReadDocument(t *testing.T) {
	t.Parallel()
	multi := newKey(t, "", 'a').Multikey()
	method := func(id, rest string) string {
		return fmt.Sprintf(`{"id":%q,"type":"Multikey","controller":%q,"publicKeyMultibase":%q%s}`, id, subject, multi, rest)
	}
	document := func(members string) string { return fmt.Sprintf(`{"id":%q,%s}`, subject, members) }
	for name, c := range map[string]struct {
		text string
		keys int
		ok   bool
	}{
		"a reference":       {document(`"@context":"https://www.w3.org/ns/did/v1","verificationMethod":[` + method(subject+"#a", "") + `],"assertionMethod":["` + subject + `#a"]`), 1, true},
		"relative ids":      {document(`"@context":[{"@base":"x"}],"verificationMethod":[` + method("#a", "") + `],"authentication":["#a"]`), 1, true},
		"in the relation":   {document(`"assertionMethod":[` + method("#a", "") + `]`), 1, true},
		"no relation":       {document(`"verificationMethod":[` + method("#a", "") + `]`), 0, true},
		"both relations":    {document(`"verificationMethod":[` + method("#a", "") + `],"assertionMethod":["#a"],"authentication":["#a"]`), 1, true},
		"key agreement":     {document(`"keyAgreement":[` + method("#a", "") + `]`), 0, true},
		"key of another":    {document(`"assertionMethod":[` + method("did:web:other.example#a", "") + `]`), 0, true},
		"other controller":  {document(`"assertionMethod":[{"id":"#a","controller":"did:web:other.example","publicKeyMultibase":"` + multi + `"}]`), 0, true},
		"no fragment":       {document(`"assertionMethod":[` + method(subject, "") + `]`), 0, true},
		"unknown key":       {document(`"assertionMethod":[{"id":"#a","type":"X","blockchainAccountId":"x"},"#b",7]`), 0, true},
		"nothing":           {document(`"alsoKnownAs":[]`), 0, true},
		"service of others": {document(`"service":[{"id":"#s","type":["A"],"serviceEndpoint":{"uri":"x"}}]`), 0, true},
		"low order":         {document(`"assertionMethod":["#b",` + method("#a", "") + `,{"id":"#w","publicKeyJwk":{"kty":"OKP","crv":"Ed25519","x":"7P___________________________________________38"}}]`), 1, true},
		"another subject":   {`{"id":"did:web:other.example"}`, 0, false},
		"no object":         {`[]`, 0, false},
		"twice":             {document(`"verificationMethod":[],"verificationMethod":[]`), 0, false},
		"too large":         {document(`"x":"` + strings.Repeat("x", 1<<20) + `"`), 0, false},
		"too many":          {document(`"verificationMethod":[` + strings.TrimSuffix(strings.Repeat(method("#a", "")+",", 33), ",") + `]`), 0, false},
		"too deep":          {document(`"x":` + strings.Repeat("[", 20) + strings.Repeat("]", 20)), 0, false},
	} {
		d, err := did.ReadDocument(subject, []byte(c.text))
		if (err == nil) != c.ok || len(d.Keys) != c.keys {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

// FuzzReadDocument looks for a document whose keys are of another subject.
func FuzzReadDocument(f *testing.F) {
	f.Add(`{"id":"did:web:lab.example","assertionMethod":[{"id":"#a","publicKeyMultibase":"z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := did.ReadDocument(subject, []byte(text))
		for _, k := range d.Keys {
			if err != nil || !strings.HasPrefix(k.ID, subject+"#") {
				t.Fatalf("%q has the key %s", text, k.ID)
			}
		}
	})
}

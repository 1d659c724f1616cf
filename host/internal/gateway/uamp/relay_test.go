package uamp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
)

// TestRelayed (V-U40, U-023, U-044): a relay that shows a credential of its own hands on what
// another has signed. The signature is proven by the signer's document at the end of the way: it
// outlasts other white space and another order of members, and no other change. A relay hands on
// for the senders of its ids alone.
func TestRelayed(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	h.web.documents = map[string]did.Document{
		"https://lab.example/agents/x/did.json": {ID: labDID, Keys: []seal.PublicKey{h.own.Public()}},
	}
	for name, ids := range map[string]string{"relay": "did:web:lab.example:*", "stranger": "did:web:relay.example:*"} {
		realm := gatewaytest.Realm("default", name)
		h.rt.Admit(name+"-token", realm)
		h.rt.AddPartner(gateway.Partner{Name: name, Tenant: "default", IDs: []string{ids}, May: realm.May})
	}
	seen := h.exposeAsks("calc")
	for name, c := range map[string]struct {
		by     string
		change func(*testing.T, string) string
		code   envelope.Code // empty for what is taken
	}{
		"unchanged": {"relay", func(_ *testing.T, text string) string { return text }, ""},
		"rewritten": {"relay", func(t *testing.T, text string) string {
			var members map[string]json.RawMessage
			if err := json.Unmarshal([]byte(text), &members); err != nil {
				t.Fatal(err)
			}
			other, err := json.MarshalIndent(members, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			return string(other)
		}, ""},
		"altered":  {"relay", func(_ *testing.T, text string) string { return strings.Replace(text, "2+2", "2+3", 1) }, envelope.Unauthenticated},
		"stranger": {"stranger", func(_ *testing.T, text string) string { return text }, envelope.Unauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				got := h.post(t, c.by+"-token", c.change(t, string(text)))
				w.WriteHeader(got.status)
				_, _ = io.WriteString(w, got.text)
			}))
			t.Cleanup(relay.Close)
			e := newAsk("calc", "2+2")
			rsp, err := http.Post(relay.URL, envelope.MediaType, strings.NewReader(signedBy(t, h.own, e)))
			if err != nil {
				t.Fatal(err)
			}
			defer rsp.Body.Close()
			text, err := io.ReadAll(rsp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if c.code != "" {
				h.refused(t, name, reply{status: rsp.StatusCode, text: string(text)}, c.code)
				return
			}
			if rsp.StatusCode != http.StatusAccepted {
				t.Fatalf("%d %s", rsp.StatusCode, text)
			}
			if a := <-seen; a.From != labDID || a.Body != "2+2" {
				t.Errorf("%+v", a)
			}
		})
	}
	if n := h.web.fetched.Load(); n != 1 {
		t.Errorf("%d documents are fetched", n)
	}
}

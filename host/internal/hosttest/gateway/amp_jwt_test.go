package gateway_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/hosttest"
)

// newSigner returns a key that signs tokens, and its public part.
func newSigner(t *testing.T) (jose.Signer, jose.JSONWebKey) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, jose.JSONWebKey{Key: public, KeyID: "k"}
}

// TestJWTOverAMP (M-070, M-071, M-074, V-M13): a JSON Web Token proves the partner that it names, in the
// transport's header and in the message, until it expires. One that is over, of another key,
// another audience or another partner does not, and two credentials must be the same.
func TestJWTOverAMP(t *testing.T) {
	t.Parallel()
	s := hosttest.EmptySite(t)
	signer, public := newSigner(t)
	stranger, _ := newSigner(t)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{public}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "jwks.json"), set, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Write(strings.Replace(file("hive", `[gateways.amp]
[gateways.amp.partners.acme]
ids = ["agent-*"]
[auth.jwt]
issuer = "https://id.example"
audience = "hive"
keys = "file::jwks.json"
roles = { partner = "agent" }
agents = ["acme", "rival"]
`), `"a2a"]`, `"a2a", "amp"]`, 1))
	s.Start()
	token := func(by jose.Signer, subject, audience string, end time.Duration) string {
		t.Helper()
		text, err := jwt.Signed(by).Claims(map[string]any{
			"iss": "https://id.example", "aud": audience, "sub": subject, "exp": time.Now().Add(end).Unix(), "role": "partner",
		}).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := token(signer, "acme", "hive", time.Hour)
	for name, c := range map[string]struct {
		shown, within, source string // the token of the header, the one of the message, and who sends
		status                int
		reason                string
	}{
		"in the header":    {good, "", "agent-1", http.StatusOK, ""},
		"in the message":   {"", good, "agent-1", http.StatusOK, ""},
		"in both":          {good, good, "agent-1", http.StatusOK, ""},
		"two":              {good, token(signer, "rival", "hive", time.Hour), "agent-1", http.StatusUnauthorized, "CREDENTIAL"},
		"another's agent":  {good, "", "other-1", http.StatusForbidden, "FORBIDDEN"},
		"over":             {token(signer, "acme", "hive", -time.Hour), "", "agent-1", http.StatusUnauthorized, "CREDENTIAL"},
		"over, within":     {"", token(signer, "acme", "hive", -time.Hour), "agent-1", http.StatusUnauthorized, "CREDENTIAL"},
		"of another key":   {token(stranger, "acme", "hive", time.Hour), "", "agent-1", http.StatusUnauthorized, "CREDENTIAL"},
		"for another host": {token(signer, "acme", "combs", time.Hour), "", "agent-1", http.StatusUnauthorized, "CREDENTIAL"},
		"of no partner":    {token(signer, "rival", "hive", time.Hour), "", "agent-1", http.StatusForbidden, "FORBIDDEN"},
		"unsigned":         {"eyJhbGciOiJub25lIn0." + strings.Split(good, ".")[1] + ".", "", "agent-1", http.StatusUnauthorized, "CREDENTIAL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := amptest.Mail(c.source, "boss", "hello")
			if c.within != "" {
				m.Message.Headers["authentication"] = amptest.Object{"type": "jwt", "token": c.within}
			}
			r, err := amptest.Client{URL: s.URL() + "/aip/v1/invoke", Token: c.shown}.Send(m)
			if err != nil || r.Message == nil {
				t.Fatalf("%d %s, %v", r.Status, r.Text, err)
			}
			if _, _, reason := r.Message.Fault(); r.Status != c.status || reason != c.reason {
				t.Errorf("got %d %s", r.Status, r.Text)
			}
		})
	}
}

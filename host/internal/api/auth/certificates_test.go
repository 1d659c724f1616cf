package auth_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"strings"
	"testing"

	"skep/host/internal/api/auth"
)

// Names that could match more than one thing are refused.
func TestCertificateNames(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{
		"": "DNS name", "*": "without *", "*.acme.example": "without *", "spiffe://*/agents": "without *",
		"spiffe://": "a host", "acme/agents": "DNS name", "acme agents": "DNS name", ":8000": "",
	} {
		_, err := auth.NewCertificates(map[string]auth.Principal{name: {ID: "acme"}})
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("NewCertificates(%q) = %v, want %q", name, err, words)
		}
	}
	twice := map[string]auth.Principal{"agents.acme.example": {ID: "acme"}, "Agents.acme.example": {ID: "lab"}}
	if _, err := auth.NewCertificates(twice); err == nil {
		t.Error("a name of two principals was accepted")
	}
}

// A certificate that was shown but not verified names nobody.
func TestUnverifiedCertificate(t *testing.T) {
	t.Parallel()
	c, err := auth.NewCertificates(map[string]auth.Principal{"urn:acme:agents": {ID: "acme"}})
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{URIs: []*url.URL{{Scheme: "urn", Opaque: "acme:agents"}}}
	for _, state := range []*tls.ConnectionState{nil, {}, {PeerCertificates: []*x509.Certificate{leaf}}} {
		if who, ok, err := c.Principal(state); ok || err != nil {
			t.Errorf("Principal(%v) = %v, %v", state, who, err)
		}
	}
	verified := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}
	if who, ok, err := c.Principal(verified); !ok || who.ID != "acme" || err != nil {
		t.Errorf("Principal of the verified = %v, %v, %v", who, ok, err)
	}
	if err := c.Replace(map[string]auth.Principal{"*": {ID: "acme"}}); err == nil {
		t.Error("a name with a star took the place of the others")
	}
	if _, ok, _ := c.Principal(verified); !ok {
		t.Error("a refused replacement took the names away")
	}
	if err := c.Replace(nil); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := c.Principal(verified); ok {
		t.Error("a name that was taken away counts")
	}
	var none *auth.Certificates
	if _, ok, _ := none.Principal(verified); ok {
		t.Error("no certificates name somebody")
	}
}

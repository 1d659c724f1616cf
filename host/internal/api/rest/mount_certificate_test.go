package rest_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
)

// clientCA signs the certificates of partners.
type clientCA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newClientCA(t *testing.T) *clientCA {
	t.Helper()
	a := &clientCA{}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	pair := a.sign(t, form)
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// sign makes a certificate; the first of an authority is its own.
func (a *clientCA) sign(t *testing.T, form *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = form, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

// names are what a certificate says of its holder.
type names struct {
	subject   string
	uris, dns []string
}

func (a *clientCA) issue(t *testing.T, n names) tls.Certificate {
	t.Helper()
	form := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: n.subject}, NotAfter: time.Now().Add(time.Hour), DNSNames: n.dns,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, text := range n.uris {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		form.URIs = append(form.URIs, u)
	}
	return a.sign(t, form)
}

// A client certificate is the partner whose name it has whole (G-056).
func TestMountClientCertificates(t *testing.T) {
	t.Parallel()
	acme := auth.Principal{Tenant: "default", Role: auth.Agent, ID: "acme", Peer: "acme"}
	lab := auth.Principal{Tenant: "default", Role: auth.Agent, ID: "lab", Peer: "lab"}
	certs, err := auth.NewCertificates(map[string]auth.Principal{
		"spiffe://acme/agents": acme, "agents.acme.example": acme, "spiffe://lab": lab,
	})
	if err != nil {
		t.Fatal(err)
	}
	ca := newClientCA(t)
	trusted := x509.NewCertPool()
	trusted.AddCert(ca.cert)
	server := httptest.NewUnstartedServer(mounted(t, rest.Options{Certificates: certs}, rest.Mount{Proof: rest.BearerProof, Handler: &mountedHandler{}}))
	server.TLS = &tls.Config{ClientCAs: trusted, ClientAuth: tls.VerifyClientCertIfGiven}
	server.StartTLS()
	t.Cleanup(server.Close)

	for name, c := range map[string]struct {
		names  *names
		token  string
		status int
		body   string
	}{
		"a URI":                    {names: &names{uris: []string{"spiffe://acme/agents"}}, status: 200, body: acme.String()},
		"a DNS name":               {names: &names{dns: []string{"agents.acme.example"}}, status: 200, body: acme.String()},
		"a DNS name in capitals":   {names: &names{dns: []string{"AGENTS.Acme.example"}}, status: 200, body: acme.String()},
		"both names of a partner":  {names: &names{uris: []string{"spiffe://acme/agents"}, dns: []string{"agents.acme.example"}}, status: 200, body: acme.String()},
		"another name besides":     {names: &names{uris: []string{"spiffe://other", "spiffe://lab"}}, status: 200, body: lab.String()},
		"names of two partners":    {names: &names{uris: []string{"spiffe://acme/agents", "spiffe://lab"}}, status: 401},
		"a longer URI":             {names: &names{uris: []string{"spiffe://acme/agents/calc"}}, status: 401},
		"a shorter URI":            {names: &names{uris: []string{"spiffe://acme"}}, status: 401},
		"a URI with a slash more":  {names: &names{uris: []string{"spiffe://lab/"}}, status: 401},
		"a name below a DNS name":  {names: &names{dns: []string{"evil.agents.acme.example"}}, status: 401},
		"a name above it":          {names: &names{dns: []string{"acme.example"}}, status: 401},
		"a wildcard":               {names: &names{dns: []string{"*.acme.example"}}, status: 401},
		"a URI as a DNS name":      {names: &names{dns: []string{"spiffe://acme/agents"}}, status: 401},
		"the subject alone":        {names: &names{subject: "agents.acme.example"}, status: 401},
		"no certificate":           {status: 401},
		"a token and no name":      {names: &names{}, token: bobToken, status: 200, body: "default/user:bob"},
		"a token before a name":    {names: &names{uris: []string{"spiffe://lab"}}, token: bobToken, status: 200, body: "default/user:bob"},
		"a wrong token and a name": {names: &names{uris: []string{"spiffe://lab"}}, token: "guess-0000000000", status: 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var own []tls.Certificate
			if c.names != nil {
				own = []tls.Certificate{ca.issue(t, *c.names)}
			}
			status, body := callAs(t, server, own, c.token)
			if status != c.status || c.status == 200 && body != c.body+" a" {
				t.Errorf("%d %q, want %d %q", status, body, c.status, c.body)
			}
		})
	}
	stranger := newClientCA(t).issue(t, names{uris: []string{"spiffe://lab"}})
	if status, body := callAs(t, server, []tls.Certificate{stranger}, ""); status == 200 {
		t.Errorf("a certificate of another authority: %d %q", status, body)
	}
}

// callAs calls with a certificate; a status of 0 is a connection that was refused.
func callAs(t *testing.T, server *httptest.Server, own []tls.Certificate, token string) (int, string) {
	t.Helper()
	trust := x509.NewCertPool()
	trust.AddCert(server.Certificate())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust, Certificates: own}}
	defer transport.CloseIdleConnections()
	q, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/toy/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	a, err := transport.RoundTrip(q)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(body)
}

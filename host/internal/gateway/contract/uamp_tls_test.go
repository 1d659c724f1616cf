package contract_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"skep/host/internal/gateway/contract"
)

// uampCertificate is a certificate for 127.0.0.1 that is its own authority, and its files.
type uampCertificate struct {
	pair      tls.Certificate
	roots     *x509.CertPool
	cert, key string
}

func newUAMPCertificate(t *testing.T) uampCertificate {
	t.Helper()
	server := httptest.NewTLSServer(nil) // it has such a certificate
	defer server.Close()
	dir := t.TempDir()
	c := uampCertificate{
		pair: server.TLS.Certificates[0], roots: x509.NewCertPool(), cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"),
	}
	c.roots.AddCert(server.Certificate())
	key, err := x509.MarshalPKCS8PrivateKey(c.pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]pem.Block{c.cert: {Type: "CERTIFICATE", Bytes: c.pair.Certificate[0]}, c.key: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(&block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// trusted is the configuration of a client that trusts the certificate.
func (c uampCertificate) trusted() *tls.Config { return &tls.Config{RootCAs: c.roots} }

// secure returns a protocol whose two sides have the certificate: a foreign agent that serve
// runs, and clients that call by what calls returns.
func (c uampCertificate) secure(p contract.Protocol, serve func(testing.TB, string, contract.Handler) (string, func()), calls func(testing.TB) *http.Client) contract.Protocol {
	p.Cert, p.Key, p.Serve, p.Partner = c.cert, c.key, serve, p.Partner+"\nca = \""+c.cert+"\""
	dial := p.Dial
	p.Dial = func(t testing.TB, url, token string) contract.Client {
		client, _ := dial(t, url, token).(uampClient)
		client.calls = calls(t)
		return client
	}
	return p
}

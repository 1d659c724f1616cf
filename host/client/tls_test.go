package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pemFile writes a block of PEM and returns its file.
func pemFile(t *testing.T, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// badge makes a certificate that vouches for itself.
func badge(t *testing.T, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pemFile(t, "CERTIFICATE", der), pemFile(t, "PRIVATE KEY", secret)
}

// secureHost says who calls: the name in the client's certificate.
func secureHost(t *testing.T, clients tls.ClientAuthType) (url, ca string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			id = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		reply(w, 200, `{"id":"`+id+`","role":"`+r.Proto+`"}`)
	}))
	srv.TLS = &tls.Config{ClientAuth: clients}
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(t.Output(), "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv.URL, pemFile(t, "CERTIFICATE", srv.Certificate().Raw)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := badge(t, "alice")
	foreign, _ := badge(t, "foreign")
	for _, tc := range []struct {
		name    string
		clients tls.ClientAuthType
		tls     func(ca string) TLS
		want    string // empty: refused
	}{
		{"trusted", tls.NoClientCert, func(ca string) TLS { return TLS{CA: ca} }, "nobody"},
		{"not trusted by the system", tls.NoClientCert, func(string) TLS { return TLS{} }, ""},
		{"not trusted by these", tls.NoClientCert, func(string) TLS { return TLS{CA: foreign} }, ""},
		{"with a certificate", tls.RequireAnyClientCert, func(ca string) TLS { return TLS{ca, cert, key} }, "alice"},
		{"without one", tls.RequireAnyClientCert, func(ca string) TLS { return TLS{CA: ca} }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			url, ca := secureHost(t, tc.clients)
			c := newClient(t, Options{URL: url, TLS: tc.tls(ca)})
			who, err := c.WhoAmI(eventually(t))
			var gone *Unreachable
			if tc.want == "" && !(errors.As(err, &gone) && Untrusted(err)) || tc.want != "" && (err != nil || who != Identity{tc.want, "HTTP/2.0"}) {
				t.Errorf("answer %+v, %v; want %q", who, err, tc.want)
			}
		})
	}
}

// TestTLSOnOneSide: a host that speaks no TLS is not asked again and again.
func TestTLSOnOneSide(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	c := newClient(t, Options{URL: strings.Replace(plain.URL, "http:", "https:", 1)})
	if _, err := c.WhoAmI(eventually(t)); !Untrusted(err) {
		t.Errorf("err = %v, want one of a host without TLS", err)
	}
}

func TestTLSFiles(t *testing.T) {
	t.Parallel()
	cert, key := badge(t, "alice")
	other, _ := badge(t, "bob")
	nowhere := filepath.Join(t.TempDir(), "nowhere.pem")
	for _, tc := range []struct {
		name string
		o    Options
		want string
	}{
		{"no CA file", Options{TLS: TLS{CA: nowhere}}, "nowhere.pem"},
		{"no CA in it", Options{TLS: TLS{CA: key}}, "holds no certificate in PEM"},
		{"no key", Options{TLS: TLS{Cert: cert}}, "one for its key"},
		{"no certificate", Options{TLS: TLS{Key: key}}, "one for its key"},
		{"no certificate file", Options{TLS: TLS{Cert: nowhere, Key: key}}, "nowhere.pem"},
		{"another's key", Options{TLS: TLS{Cert: other, Key: key}}, "does not match"},
		{"two ways", Options{TLS: TLS{CA: cert}, HTTP: http.DefaultClient}, "exclude each other"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.o.URL = "https://host.test"
			_, err := New(tc.o)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want %q", err, tc.want)
			}
			if missing := strings.Contains(tc.want, "nowhere"); missing != errors.Is(err, fs.ErrNotExist) {
				t.Errorf("err = %v, a missing file: %v", err, missing)
			}
		})
	}
}

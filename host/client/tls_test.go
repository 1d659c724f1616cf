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
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
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

// secureHost answers with the name in the client's certificate.
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
			if tc.want == "" && !(errors.As(err, &gone) && Untrusted(err)) || tc.want != "" && (err != nil || who != Identity{tc.want, "HTTP/2.0", false}) {
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

// TestInTheClear: a host with TLS that is called without is asked once.
func TestInTheClear(t *testing.T) {
	t.Parallel()
	url, _ := secureHost(t, tls.NoClientCert)
	told := 0
	c := newClient(t, Options{URL: strings.Replace(url, "https:", "http:", 1), OnRetry: func(error, time.Duration) { told++ }})
	_, err := c.WhoAmI(eventually(t))
	var gone *Unreachable
	if !errors.As(err, &gone) || !errors.Is(err, ErrSpeaksTLS) || !Untrusted(err) || !strings.HasSuffix(err.Error(), url) || told != 0 {
		t.Errorf("err = %v after %d repeats, want one that names %s at once", err, told, url)
	}
}

// TestOwnWordsOnTLS: a host whose answer in JSON speaks of HTTPS has been reached.
func TestOwnWordsOnTLS(t *testing.T) {
	t.Parallel()
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 400, `{"detail":"an HTTP request for an HTTPS page"}`)
	})
	var refusal *Error
	if _, err := c.WhoAmI(eventually(t)); !errors.As(err, &refusal) || refusal.Status != 400 {
		t.Errorf("err = %v, want the refusal", err)
	}
}

// TestAlertComesLate: an alert that is lost with its connection is told by the next
// try, and nothing of the first one.
func TestAlertComesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		alert := &net.OpError{Op: "remote error", Err: tls.AlertError(116)}
		steps, told := []error{syscall.EPIPE, alert}, 0
		c := wired(t, Options{URL: "https://host.test", OnRetry: func(error, time.Duration) { told++ }},
			func(*http.Request) (*http.Response, error) {
				err := steps[0]
				steps = steps[1:]
				return nil, err
			})
		if _, err := c.WhoAmI(t.Context()); !Untrusted(err) || told != 0 || len(steps) != 0 {
			t.Errorf("err = %v, told %d times, %d tries left", err, told, len(steps))
		}
	})
}

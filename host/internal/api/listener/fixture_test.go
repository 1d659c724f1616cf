package listener_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skep/host/internal/api/listener"
	"skep/host/internal/api/rest"
)

// net/http waits half a second for callers that were refused, even when its server
// was closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// testCA signs certificates.
type testCA struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newTestCA(t testing.TB) *testCA {
	t.Helper()
	a := &testCA{t: t, key: newKey(t)}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = a.sign(form, form, a.key)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *testCA) sign(form, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	a.t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, form, parent, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// issue makes a pair in PEM form, for this machine, that lasts until a time.
func (a *testCA) issue(serial int64, until time.Time) (cert, key []byte) {
	a.t.Helper()
	return a.issueFrom(serial, time.Now().Add(-time.Hour), until)
}

func (a *testCA) issueFrom(serial int64, from, until time.Time) (cert, key []byte) {
	a.t.Helper()
	own := newKey(a.t)
	c := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: from, NotAfter: until, IPAddresses: []net.IP{{127, 0, 0, 1}},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, own)
	raw, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	return encodePEM("CERTIFICATE", c.Raw), encodePEM("PRIVATE KEY", raw)
}

func encodePEM(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}

func (a *testCA) pem() []byte { return encodePEM("CERTIFICATE", a.cert.Raw) }

func (a *testCA) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// certificateFixture is where the files of a listener lie.
type certificateFixture struct {
	t     testing.TB
	files listener.Files
	log   logLines
}

func newCertificateFixture(t testing.TB) *certificateFixture {
	dir := t.TempDir()
	return &certificateFixture{t: t, files: listener.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}}
}

func (d *certificateFixture) write(path string, text []byte) {
	d.t.Helper()
	// At once: half a file would be another fault.
	if err := errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *certificateFixture) put(cert, key []byte) {
	d.write(d.files.Cert, cert)
	d.write(d.files.Key, key)
}

func (d *certificateFixture) load(change ...func(*listener.CertificateOptions)) *listener.Certificates {
	d.t.Helper()
	opt := listener.CertificateOptions{Files: d.files, Logger: slog.New(slog.NewTextHandler(&d.log, nil))}
	for _, c := range change {
		c(&opt)
	}
	certs, err := listener.LoadCertificates(opt)
	if err != nil {
		d.t.Fatal(err)
	}
	return certs
}

// logLines is a log that tests read.
type logLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logLines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// open serves a handler with the host's own settings.
func open(t testing.TB, limits listener.Limits, certs *listener.Certificates, h http.Handler, change ...func(*http.Server)) *listener.Listener {
	t.Helper()
	l, err := listener.Open(t.Context(), "127.0.0.1:0", limits, certs)
	if err != nil {
		t.Fatal(err)
	}
	s := rest.Server(h, true)
	s.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	for _, c := range change {
		c(s)
	}
	done := make(chan error, 1)
	go func() { done <- l.Serve(s) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		// A connection in use is closed by its server.
		for end := time.Now().Add(time.Minute); l.Counts().Open != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("%d connections are still counted", l.Counts().Open)
				break
			}
		}
	})
	return l
}

// dialFrom opens a connection from an address of this machine.
func dialFrom(t testing.TB, from string, l *listener.Listener) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// caller is a client of its own that uses one connection after another.
func caller(t testing.TB, settings *tls.Config) *http.Client {
	tr := &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

func get(ctx context.Context, c *http.Client, url string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, "", err
	}
	rsp, err := c.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = rsp.Body.Close() }()
	body, err := io.ReadAll(rsp.Body)
	return rsp, string(body), err
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })

// until waits for something that comes from other goroutines.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it did not come to that", what)
		}
	}
}

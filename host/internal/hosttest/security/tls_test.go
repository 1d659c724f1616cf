package security_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"skep/host"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// writeCertificate puts a certificate for this machine into a directory, which
// lasts until a time, and returns it.
func writeCertificate(t *testing.T, dir string, serial int64, until time.Time) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().AddDate(0, -3, 0), NotAfter: until,
		IPAddresses: []net.IP{{127, 0, 0, 1}}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// tlsClient trusts one certificate and makes a new connection each time.
func tlsClient(cert *x509.Certificate) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
}

// A host with a certificate speaks TLS on its public listener, warns its operators
// when the certificate ends, and takes a new one when it is told to.
func TestSecureHost(t *testing.T) {
	t.Parallel()
	dir := hosttest.WriteSwarm(t, "[server.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n")
	first := writeCertificate(t, dir, 1, time.Now().Add(24*time.Hour))
	hangups := make(chan os.Signal)
	h, stop := startTLS(t, dir, hangups)
	if !strings.HasPrefix(h.URL(), "https://") {
		t.Errorf("URL = %s", h.URL())
	}
	rsp, _ := hosttest.Fetch(t, tlsClient(first), h.URL()+"/health")
	if rsp.Proto != "HTTP/2.0" || rsp.StatusCode != http.StatusOK || rsp.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%s %s %v", rsp.Proto, rsp.Status, rsp.Header)
	}
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if rsp, body := hosttest.Fetch(t, plain, "http://"+h.Addr()+"/health"); rsp.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP on a listener with TLS: %s %s", rsp.Status, body)
	}
	for path, want := range map[string]string{
		"/readyz": "ready\nwarning: the certificate in ", "/metrics": "skep_certificate_expires_seconds 8",
	} {
		if rsp, body := hosttest.Fetch(t, plain, "http://"+h.AdminAddr()+path); rsp.StatusCode != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %s %s, want …%s…", path, rsp.Status, body, want)
		}
	}
	second := writeCertificate(t, dir, 2, time.Now().AddDate(1, 0, 0))
	hangups <- syscall.SIGHUP
	hangups <- syscall.SIGHUP // taken once the first has been seen to
	if rsp, _ := hosttest.Fetch(t, tlsClient(second), h.URL()+"/health"); rsp.StatusCode != http.StatusOK {
		t.Error(rsp.Status)
	}
	if _, body := hosttest.Fetch(t, plain, "http://"+h.AdminAddr()+"/readyz"); body != "ready\n" {
		t.Errorf("/readyz says %q", body)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func startTLS(t *testing.T, dir string, hangups <-chan os.Signal) (h *host.Host, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h, err := newHost(t, dir, host.Options{Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", Hangups: hangups})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	return h, func() error { cancel(); return <-done }
}

// newHost makes a host of the file in a directory.
func newHost(t *testing.T, dir string, opt host.Options) (*host.Host, error) {
	t.Helper()
	guests.Bytes(t, "plugins/script")
	cfg, err := config.Load(filepath.Join(dir, "swarm.toml"), config.Options{BundleDir: hosttest.Bundles()})
	if err != nil {
		t.Fatal(err)
	}
	opt.Config, opt.CacheDir = cfg, guests.CacheDir(t)
	return host.New(context.Background(), opt)
}

// An address that was given beside the file is held to the same rule, whatever it
// looks like.
func TestNoPlainHTTPBeyondThisMachine(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]host.Options{
		"public": {Listen: "0.0.0.0:0", AdminListen: "off"},
		"admin":  {Listen: "127.0.0.1:0", AdminListen: ":0"},
	} {
		dir := hosttest.WriteSwarm(t, "[[auth.keys]]\nid = \"a\"\nrole = \"user\"\nkey = \"0123456789abcdef\"\n")
		h, err := newHost(t, dir, opt)
		if err == nil || !strings.Contains(err.Error(), "[server.tls]") || !strings.Contains(err.Error(), "plain_http = true (--plain-http)") {
			t.Errorf("%s: %v, %v", name, h, err)
		}
	}
	dir := hosttest.WriteSwarm(t, "[[auth.keys]]\nid = \"a\"\nrole = \"user\"\nkey = \"0123456789abcdef\"\n")
	h, err := newHost(t, dir, host.Options{Listen: "0.0.0.0:0", AdminListen: "off", PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// A certificate that has expired stops the start, and the message names it.
func TestExpiredCertificate(t *testing.T) {
	t.Parallel()
	dir := hosttest.WriteSwarm(t, "[server]\ntls = { cert = \"cert.pem\", key = \"key.pem\" }\n")
	writeCertificate(t, dir, 1, time.Now().Add(-time.Minute))
	h, err := newHost(t, dir, host.Options{Listen: "127.0.0.1:0", AdminListen: "off"})
	if err == nil || !strings.Contains(err.Error(), "[server.tls]: the certificate in") || !strings.Contains(err.Error(), "expired on") {
		t.Errorf("New = %v, %v", h, err)
	}
}

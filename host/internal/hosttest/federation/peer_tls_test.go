package federation_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// authority is a self-made certificate authority.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := certificateForm()
	form.IsCA, form.KeyUsage = true, x509.KeyUsageCertSign
	a := authority{key: key}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// certificateForm is of a certificate of this machine.
func certificateForm() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IPAddresses: []net.IP{{127, 0, 0, 1}}, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// issue writes ca.pem, cert.pem and key.pem into a directory.
func (a authority) issue(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.CreateCertificate(rand.Reader, certificateForm(), a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"ca.pem": {Type: "CERTIFICATE", Bytes: a.cert.Raw}, "cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Two hosts with certificates of a self-made authority, of which one lets nobody in
// without one, work together and are well. A reload takes over other files.
func TestPeerWithItsOwnAuthority(t *testing.T) {
	t.Parallel()
	ours, foreign := newAuthority(t), newAuthority(t)
	hive, depot := hosttest.EmptySite(t), hosttest.EmptySite(t)
	foreign.issue(t, hive.Dir)
	ours.issue(t, depot.Dir)
	file := func(name, peer, url, own string) string {
		fill := strings.NewReplacer("NAME", name, "TARGETS", fmt.Sprintf("%q", "*@"+peer))
		return fill.Replace(hosttest.FederatedSwarm) + own + hosttest.PeerTables(name, peer, url, "1s")
	}
	const calls = "ca_file = \"ca.pem\"\nclient_cert = \"cert.pem\"\nclient_key = \"key.pem\"\n"
	hive.Write(file("hive", "depot", "https://127.0.0.1:1", "") + calls)
	hive.Start()
	depot.Write(file("depot", "hive", "http://"+hive.Addr(), "[server.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\nclient_ca = \"ca.pem\"\nclient_auth = \"require\"\n"))
	depot.Start()
	ask := func(task, want string) {
		t.Helper()
		a, err := hive.As(hosttest.AliceKey).PostMessage(t.Context(), client.Post{Body: hosttest.RequestOf("math@depot", "x"), Subject: "q", Task: task})
		if err != nil || !strings.Contains(a.Body, want) {
			t.Errorf("%s: %+v, %v", task, a, err)
		}
	}
	reload := func(tables string) {
		t.Helper()
		hive.Write(file("hive", "depot", "https://"+depot.Addr(), "") + tables)
		if _, err := hive.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	reload(calls)
	ask("foreign", "::router_error::")
	ours.issue(t, hive.Dir)
	reload(calls)
	ask("ours", "echo: x")
	if e, err := hive.As(hosttest.OperatorKey).PingPeer(t.Context(), "depot"); err != nil || !e.Active {
		t.Errorf("its health: %+v, %v", e, err)
	}
	reload("ca_file = \"ca.pem\"\n")
	ask("no certificate", "::router_error::")
}

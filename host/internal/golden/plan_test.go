package golden_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What plan prints for a host whose file sets everything: a file that changes every
// setting, and one that has none of them. And what a reload says to the former.
func TestPlan(t *testing.T) {
	t.Parallel()
	s := newWide(t)
	s.certificate()
	h := s.serve("-c", s.file("swarm.toml"), "--data", s.file("data"))
	s.write("token", variables["OPS_KEY"])
	call := []string{"--url", h.url, "--token-file", s.file("token"), "-o"}
	for _, file := range []string{"changed.toml", "small.toml"} {
		s.replace(file, "swarm.toml")
		for _, form := range []string{"text", "json"} {
			code, stdout, stderr := s.run(append(append([]string{"plan", "--exit-code"}, call...), form)...)
			if code != 2 {
				t.Errorf("plan of %s: exit code %d, want 2", file, code)
			}
			golden(t, filepath.Join("plan", file+"."+form), fmt.Sprintf("%s-- stderr --\n%s", stdout, stderr))
		}
	}
	s.replace("changed.toml", "swarm.toml")
	code, stdout, stderr := s.run(append(append([]string{"reload"}, call...), "text")...)
	golden(t, filepath.Join("plan", "reload.text"), fmt.Sprintf("exit code %d\n%s-- stderr --\n%s", code, stdout, id.ReplaceAllString(stderr, "UUID")))
}

func (s shell) replace(from, to string) {
	s.t.Helper()
	raw, err := os.ReadFile(s.file(from))
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(to, string(raw))
}

// certificate writes cert.pem and key.pem.
func (s shell) certificate() {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	now := time.Now()
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(1000 * time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		s.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})))
	s.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

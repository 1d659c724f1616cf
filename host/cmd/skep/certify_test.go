package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// certify CERT KEY makes a certificate of this machine's own, so that no key is
// kept in the tree. With a third argument it has expired, or begins tomorrow.
func certify(ts *testscript.TestScript, neg bool, args []string) {
	begins, ends := time.Now().Add(-time.Hour), time.Now().Add(365*24*time.Hour)
	switch {
	case !neg && len(args) == 2:
	case !neg && len(args) == 3 && args[2] == "expired":
		ends = time.Now().Add(-time.Minute)
	case !neg && len(args) == 3 && args[2] == "tomorrow":
		begins = time.Now().Add(24 * time.Hour)
	default:
		ts.Fatalf("usage: certify CERT KEY [expired|tomorrow]")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	shape := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "skep test"},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: begins, NotAfter: ends,
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, shape, shape, &key.PublicKey, key)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

package subprocess

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// peerName is whom both sides call themselves: what counts is the certificate.
const peerName = "localhost"

// certEnv is where a process finds the host's certificate. Its own it says in the
// handshake, and each side takes nobody else's.
const certEnv = "PLUGIN_CLIENT_CERT"

// identity makes the host's key for one process, and the certificate to it. The
// curve is one that every library of TLS has: that of gRPC in languages other than
// Go refuses the one that go-plugin would take.
func identity() (config *tls.Config, certificate string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, "", fmt.Errorf("make a serial number: %w", err)
	}
	about := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: peerName}, DNSNames: []string{peerName},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().AddDate(30, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		return nil, "", fmt.Errorf("make a certificate: %w", err)
	}
	config = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ServerName:   peerName, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
		// The handshake puts the process's in. Without it nobody is let in, also none
		// whom the machine trusts.
		RootCAs: x509.NewCertPool(), ClientCAs: x509.NewCertPool(),
	}
	return config, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), nil
}

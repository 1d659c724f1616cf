package process

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

// peerName is the server name on both sides; only the certificate is verified.
const peerName = "localhost"

// certEnv is the variable with the host's certificate. The process sends its own in the
// handshake; each side accepts only the other's.
const certEnv = "PLUGIN_CLIENT_CERT"

// newIdentity creates the host's key and certificate for one process. The curve is P-256,
// because gRPC in other languages than Go does not support the curve of go-plugin.
func newIdentity() (config *tls.Config, certificate string, err error) {
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
		// go-plugin adds the certificate of the handshake. Without it no peer is accepted,
		// not even one that the system trusts.
		RootCAs: x509.NewCertPool(), ClientCAs: x509.NewCertPool(),
	}
	return config, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), nil
}

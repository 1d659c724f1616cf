package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
)

// TLS names files in PEM.
type TLS struct {
	// CA holds the certificates of those who may vouch for the host. Empty means
	// those that the system trusts; otherwise only these count.
	CA string
	// Cert and Key are what the client shows of itself, both or neither.
	Cert, Key string
}

// read returns nil if nothing is set.
func (t TLS) read() (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("the CA file: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("the CA file %s holds no certificate in PEM", t.CA)
		}
	}
	switch {
	case t.Cert == "" && t.Key == "":
		return c, nil
	case t.Cert == "" || t.Key == "":
		return nil, errors.New("a client certificate needs a file for itself and one for its key")
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("the client certificate %s with the key %s: %w", t.Cert, t.Key, err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// Untrusted reports whether a call failed because client and host do not agree
// who they are: one certificate is missing or not trusted, or only one of them
// speaks TLS. Such a call is not repeated.
func Untrusted(err error) bool {
	var theirs *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var ours *net.OpError
	switch {
	case errors.As(err, &theirs), errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch), errors.Is(err, ErrSpeaksTLS):
		return true
	}
	return errors.As(err, &ours) && ours.Op == "remote error" // so an alert of the other side is called
}

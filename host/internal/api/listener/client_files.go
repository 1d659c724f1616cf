package listener

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// ClientFiles are files in PEM for calls of another host: the authorities that vouch
// for it, and the certificate with its key that it is shown. Each may be missing; a
// certificate has a key.
type ClientFiles struct{ CA, Cert, Key string }

// Load reads the files. It returns nil if none is named, and a *[PeriodError] for a
// certificate that is not valid at the time.
func (f ClientFiles) Load(now time.Time) (*tls.Config, error) {
	if f == (ClientFiles{}) {
		return nil, nil
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("a client certificate needs its key, and the key its certificate")
	}
	own := Files{Cert: f.Cert, Key: f.Key, ClientCA: f.CA}
	text, err := own.read()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.Cert != "" {
		parsed, err := own.parseContent(text, now)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{parsed.cert}
	}
	if f.CA != "" {
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text.ca) {
			return nil, fmt.Errorf("%s holds no certificate in PEM form", f.CA)
		}
	}
	return c, nil
}

package listener

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"skep/host/internal/pathcheck"
)

// Files are the paths of a certificate. ClientCA is empty without client
// certificates.
type Files struct{ Cert, Key, ClientCA string }

// maxFile bounds each file in bytes.
const maxFile = 1 << 20

// fileContent is the content of the files.
type fileContent struct {
	cert, key, ca []byte
	// exposed means that every user of the machine can read the key.
	exposed bool
}

// digest distinguishes contents.
func (c fileContent) digest() [sha256.Size]byte {
	var all [3 * sha256.Size]byte
	for i, text := range [][]byte{c.cert, c.key, c.ca} {
		sum := sha256.Sum256(text)
		copy(all[i*sha256.Size:], sum[:])
	}
	return sha256.Sum256(all[:])
}

func (f Files) read() (c fileContent, err error) {
	for _, file := range []struct {
		path string
		to   *[]byte
	}{{f.Cert, &c.cert}, {f.Key, &c.key}, {f.ClientCA, &c.ca}} {
		if file.path == "" {
			continue
		}
		var mode fs.FileMode
		if *file.to, mode, err = readFile(file.path); err != nil {
			return fileContent{}, err
		}
		c.exposed = c.exposed || file.to == &c.key && pathcheck.Grants(mode, 0o004)
	}
	return c, nil
}

// readFile opens without blocking: opening a pipe blocks until it has a writer.
func readFile(path string) (text []byte, mode fs.FileMode, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is no regular file", path)
	}
	text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return text, info.Mode(), err
}

// certificate is a parsed certificate with its key and the client CAs.
type certificate struct {
	cert    tls.Certificate
	expires time.Time
	begins  time.Time
	callers *x509.CertPool
}

// PeriodError means that a certificate is intact but not valid at Now.
type PeriodError struct {
	Cert         string // its file
	Begins, Ends time.Time
	Now          time.Time
}

// Error names the file and the date.
func (e *PeriodError) Error() string {
	if e.Now.Before(e.Begins) {
		return fmt.Sprintf("the certificate in %s is not valid before %s", e.Cert, e.Begins.UTC().Format(time.DateTime))
	}
	return fmt.Sprintf("the certificate in %s expired on %s", e.Cert, e.Ends.UTC().Format(time.DateTime))
}

// parseContent parses a content and checks that it is valid at a time. The zero
// time skips the check of the period.
func (f Files) parseContent(c fileContent, now time.Time) (p certificate, err error) {
	if p.cert, err = tls.X509KeyPair(c.cert, c.key); err != nil {
		return p, fmt.Errorf("%s and %s are no certificate and its key: %w", f.Cert, f.Key, err)
	}
	p.begins, p.expires = p.cert.Leaf.NotBefore, p.cert.Leaf.NotAfter
	if !now.IsZero() && (now.Before(p.begins) || now.After(p.expires)) {
		return p, &PeriodError{Cert: f.Cert, Begins: p.begins, Ends: p.expires, Now: now}
	}
	if f.ClientCA == "" {
		return p, nil
	}
	p.callers = x509.NewCertPool()
	if !p.callers.AppendCertsFromPEM(c.ca) {
		return p, fmt.Errorf("%s holds no certificate in PEM form", f.ClientCA)
	}
	return p, nil
}

// Check returns the fault of the files at a time: a *[PeriodError] when only the
// period is wrong. The zero time skips that check.
func (f Files) Check(now time.Time) error {
	c, err := f.read()
	if err != nil {
		return err
	}
	_, err = f.parseContent(c, now)
	return err
}

// errNoFiles is returned for TLS without a certificate.
var errNoFiles = errors.New("TLS needs a certificate and its key")

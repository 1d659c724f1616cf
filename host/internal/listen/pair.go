package listen

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
)

// Files of a certificate, by path. ClientCA is empty where callers show none.
type Files struct{ Cert, Key, ClientCA string }

// maxFile bounds each of them, in bytes.
const maxFile = 1 << 20

// content is what the files hold.
type content struct {
	cert, key, ca []byte
	// exposed says that everybody on the machine can read the key.
	exposed bool
}

// digest tells one content from another.
func (c content) digest() [sha256.Size]byte {
	var all [3 * sha256.Size]byte
	for i, text := range [][]byte{c.cert, c.key, c.ca} {
		sum := sha256.Sum256(text)
		copy(all[i*sha256.Size:], sum[:])
	}
	return sha256.Sum256(all[:])
}

func (f Files) read() (c content, err error) {
	for _, file := range []struct {
		path string
		to   *[]byte
	}{{f.Cert, &c.cert}, {f.Key, &c.key}, {f.ClientCA, &c.ca}} {
		if file.path == "" {
			continue
		}
		var mode fs.FileMode
		if *file.to, mode, err = readFile(file.path); err != nil {
			return content{}, err
		}
		c.exposed = c.exposed || file.to == &c.key && mode&0o004 != 0
	}
	return c, nil
}

// readFile opens without waiting: a pipe would let nobody in until somebody writes.
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

// pair is a certificate with its key, and who vouches for callers.
type pair struct {
	cert    tls.Certificate
	expires time.Time
	begins  time.Time
	callers *x509.CertPool
}

// PeriodError says that a certificate is not valid at a time, though it is whole.
type PeriodError struct {
	Cert         string // its file
	Begins, Ends time.Time
	Now          time.Time
}

// Error names the file and the day.
func (e *PeriodError) Error() string {
	if e.Now.Before(e.Begins) {
		return fmt.Sprintf("the certificate in %s is not valid before %s", e.Cert, e.Begins.UTC().Format(time.DateTime))
	}
	return fmt.Sprintf("the certificate in %s expired on %s", e.Cert, e.Ends.UTC().Format(time.DateTime))
}

// parse makes sure that a content can be served at a time; at the zero time any
// period will do.
func (f Files) parse(c content, now time.Time) (p pair, err error) {
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

// Check says what is wrong with the files at a time, if anything is: a
// *[PeriodError] when only the time is. The zero time is in every period.
func (f Files) Check(now time.Time) error {
	c, err := f.read()
	if err != nil {
		return err
	}
	_, err = f.parse(c, now)
	return err
}

// errNoFiles is for those who ask for TLS without a certificate.
var errNoFiles = errors.New("TLS needs a certificate and its key")

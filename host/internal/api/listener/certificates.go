package listener

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// CertificateOptions of [LoadCertificates]. Files is required.
type CertificateOptions struct {
	Files
	// RequireClient refuses clients without a certificate of ClientCA. Otherwise
	// a client's certificate is verified if there is one.
	RequireClient bool
	// TLS12 allows TLS 1.2, with AEAD ciphers only.
	TLS12  bool
	Logger *slog.Logger
	// Now is [time.Now] by default. ReloadEvery is how often the files are read,
	// 5 s by default.
	Now         func() time.Time
	ReloadEvery time.Duration
}

// Certificates are the certificates of listeners, replaced at run time. They are
// safe for concurrent use.
type Certificates struct {
	opt     CertificateOptions
	read    func() (fileContent, error)
	current atomic.Pointer[activeCertificate]
	// slowAfter is how long reading the files may take before it is logged.
	slowAfter time.Duration

	// mu is not held while files are read: that may block for ever.
	mu     sync.Mutex
	digest [sha256.Size]byte // of what is served
	// lastError is the fault of the files at the last read, and logged the fault
	// that was logged last. Both are empty when the files are intact.
	lastError, logged string
	// stuck means that reading the files takes too long.
	stuck  bool
	warned time.Time
}

// activeCertificate is a certificate and its TLS configuration.
type activeCertificate struct {
	certificate
	config *tls.Config
}

// LoadCertificates reads the files. Its error names the file at fault.
func LoadCertificates(opt CertificateOptions) (*Certificates, error) {
	if opt.Cert == "" || opt.Key == "" {
		return nil, errNoFiles
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.ReloadEvery = cmp.Or(opt.ReloadEvery, 5*time.Second)
	c := &Certificates{opt: opt, read: opt.read, slowAfter: readTimeout}
	text, err := c.read()
	if err != nil {
		return nil, err
	}
	if _, err := c.serve(text); err != nil {
		return nil, err
	}
	c.logExpiry()
	return c, nil
}

// serve puts a new, valid content in use. The caller holds the lock, or is the
// only user.
func (c *Certificates) serve(text fileContent) (changed bool, err error) {
	digest := text.digest()
	if digest == c.digest {
		return false, nil
	}
	p, err := c.opt.parseContent(text, c.opt.Now())
	if err != nil {
		return false, err
	}
	c.digest = digest
	c.current.Store(&activeCertificate{p, c.settings(p)})
	return true, nil
}

// aead are the TLS 1.2 ciphers with authenticated encryption and forward secrecy.
var aead = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

func (c *Certificates) settings(p certificate) *tls.Config {
	t := &tls.Config{
		Certificates: []tls.Certificate{p.cert}, MinVersion: tls.VersionTLS13, CipherSuites: aead,
		NextProtos: []string{"h2", "http/1.1"}, ClientCAs: p.callers, Time: c.opt.Now,
	}
	if c.opt.TLS12 {
		t.MinVersion = tls.VersionTLS12
	}
	switch {
	case p.callers == nil:
	case c.opt.RequireClient:
		t.ClientAuth = tls.RequireAndVerifyClientCert
	default:
		t.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return t
}

// TLS is the configuration of a listener: each connection has the certificate in use.
func (c *Certificates) TLS() *tls.Config {
	return &tls.Config{GetConfigForClient: c.config, MinVersion: tls.VersionTLS12}
}

// config returns the TLS configuration of a new connection.
func (c *Certificates) config(*tls.ClientHelloInfo) (*tls.Config, error) {
	return c.current.Load().config, nil
}

// Expires is the end of the certificate in use.
func (c *Certificates) Expires() time.Time { return c.current.Load().expires }

// expiryNotice is how long before its end a certificate causes a warning, at most
// a third of its life.
const expiryNotice = 14 * 24 * time.Hour

// Warnings returns faults of the certificate for operators.
func (c *Certificates) Warnings() []string {
	var all []string
	if text := c.expiryWarning(); text != "" {
		all = append(all, text)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logged != "" {
		all = append(all, "the certificate on disk cannot be used; the old one stays: "+c.logged)
	}
	if c.stuck {
		all = append(all, "the files of the certificate do not let themselves be read; the old one stays: look at where "+c.opt.Cert+" lies")
	}
	return all
}

// expiryWarning returns a warning when the certificate in use ends soon or has
// ended.
func (c *Certificates) expiryWarning() string {
	p := c.current.Load()
	left := p.expires.Sub(c.opt.Now())
	switch {
	case left <= 0:
		return fmt.Sprintf("the certificate in %s has expired: %s", c.opt.Cert, p.expires.UTC().Format(time.DateTime))
	case left < min(expiryNotice, p.expires.Sub(p.begins)/3):
		return fmt.Sprintf("the certificate in %s expires in %v: %s", c.opt.Cert, left.Round(time.Minute), p.expires.UTC().Format(time.DateTime))
	}
	return ""
}

// logExpiry logs the warning once a day.
func (c *Certificates) logExpiry() {
	now := c.opt.Now()
	if now.Sub(c.warned) < 24*time.Hour {
		return
	}
	if text := c.expiryWarning(); text != "" {
		c.warned = now
		c.opt.Logger.Warn(text)
	}
}

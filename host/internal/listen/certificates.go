package listen

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

// Options of [Load]. Files is required.
type Options struct {
	Files
	// RequireClient refuses callers without a certificate of ClientCA. Otherwise
	// one is verified if it is shown.
	RequireClient bool
	// TLS12 lets callers in that know no TLS 1.3, with ciphers that
	// authenticate what they encrypt.
	TLS12  bool
	Logger *slog.Logger
	// Now is [time.Now] by default, Look 5 s: how often the files are looked at.
	Now  func() time.Time
	Look time.Duration
}

// Certificates are what listeners show and ask for. They are safe for concurrent
// use.
type Certificates struct {
	opt     Options
	read    func() (content, error)
	current atomic.Pointer[served]
	// patience is how long reading the files may take before that is told.
	patience time.Duration

	// mu is not held while files are read: that may take for ever.
	mu     sync.Mutex
	digest [sha256.Size]byte // of what is served
	// broken is what the last look has found that cannot be served, and told what
	// of that was logged last; both are empty once the files are whole again.
	broken, told string
	// stuck says that the files have been read for too long.
	stuck  bool
	warned time.Time
}

// served is a pair and what callers are shown of it.
type served struct {
	pair
	config *tls.Config
}

// Load reads the files. Its error names the one at fault.
func Load(opt Options) (*Certificates, error) {
	if opt.Cert == "" || opt.Key == "" {
		return nil, errNoFiles
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.Look = cmp.Or(opt.Look, 5*time.Second)
	c := &Certificates{opt: opt, read: opt.read, patience: patience}
	text, err := c.read()
	if err != nil {
		return nil, err
	}
	if _, err := c.take(text); err != nil {
		return nil, err
	}
	c.warn()
	return c, nil
}

// take serves what the files hold, if it is new and whole. The caller holds the lock,
// or has the certificates for himself.
func (c *Certificates) take(text content) (changed bool, err error) {
	digest := text.digest()
	if digest == c.digest {
		return false, nil
	}
	p, err := c.opt.parse(text, c.opt.Now())
	if err != nil {
		return false, err
	}
	c.digest = digest
	c.current.Store(&served{p, c.settings(p)})
	return true, nil
}

// aead are the ciphers of TLS 1.2 that authenticate what they encrypt, with keys
// that are made for one connection.
var aead = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

func (c *Certificates) settings(p pair) *tls.Config {
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

// config is what a caller who knocks now is shown.
func (c *Certificates) config(*tls.ClientHelloInfo) (*tls.Config, error) {
	return c.current.Load().config, nil
}

// Expires is when the certificate in use does.
func (c *Certificates) Expires() time.Time { return c.current.Load().expires }

// soon is how long before its end a certificate is worth a word; of one that was
// made for a shorter time, a third of that.
const soon = 14 * 24 * time.Hour

// Warnings says what an operator should know of the certificate.
func (c *Certificates) Warnings() []string {
	var all []string
	if text := c.ending(); text != "" {
		all = append(all, text)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told != "" {
		all = append(all, "the certificate on disk cannot be used; the old one stays: "+c.told)
	}
	if c.stuck {
		all = append(all, "the files of the certificate do not let themselves be read; the old one stays: look at where "+c.opt.Cert+" lies")
	}
	return all
}

// ending says that the certificate in use ends soon, or has.
func (c *Certificates) ending() string {
	p := c.current.Load()
	left := p.expires.Sub(c.opt.Now())
	switch {
	case left <= 0:
		return fmt.Sprintf("the certificate in %s has expired: %s", c.opt.Cert, p.expires.UTC().Format(time.DateTime))
	case left < min(soon, p.expires.Sub(p.begins)/3):
		return fmt.Sprintf("the certificate in %s expires in %v: %s", c.opt.Cert, left.Round(time.Minute), p.expires.UTC().Format(time.DateTime))
	}
	return ""
}

// warn logs once a day that the certificate ends.
func (c *Certificates) warn() {
	now := c.opt.Now()
	if now.Sub(c.warned) < 24*time.Hour {
		return
	}
	if text := c.ending(); text != "" {
		c.warned = now
		c.opt.Logger.Warn(text)
	}
}

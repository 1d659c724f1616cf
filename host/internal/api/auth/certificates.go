package auth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
)

// Certificates are the principals that client certificates name. A nil one has none. It is
// safe for concurrent use.
type Certificates struct {
	byName atomic.Pointer[map[string]Principal]
}

// errSeveralNames refuses a certificate that names several callers: it is not clear who
// calls.
var errSeveralNames = errors.New("the client certificate names several callers")

// NewCertificates takes principals by the name in their certificates: a URI, as
// spiffe://acme/agents, or a DNS name. Names match whole.
func NewCertificates(byName map[string]Principal) (*Certificates, error) {
	c := &Certificates{}
	return c, c.Replace(byName)
}

// Replace puts other principals in the place of all. With an error nothing changes.
func (c *Certificates) Replace(byName map[string]Principal) error {
	checked := make(map[string]Principal, len(byName))
	for text, who := range byName {
		name, err := certificateName(text)
		if err != nil {
			return fmt.Errorf("certificate name %q: %w", text, err)
		}
		if other, twice := checked[name]; twice && other != who {
			return fmt.Errorf("certificate name %q is of %s and of %s", text, other, who)
		}
		checked[name] = who
	}
	c.byName.Store(&checked)
	return nil
}

// certificateName is the form in which a name is compared. DNS names have no case.
func certificateName(text string) (string, error) {
	if strings.Contains(text, "*") {
		return "", errors.New("names match whole; write each without *")
	}
	if strings.Contains(text, ":") {
		u, err := url.Parse(text)
		if err == nil && (u.Scheme == "" || u.Host == "" && u.Opaque == "") {
			err = errors.New("a URI has a scheme and a host, as spiffe://acme/agents")
		}
		if err != nil {
			return "", err
		}
		return u.String(), nil
	}
	if text == "" || strings.ContainsAny(text, "/ \t") {
		return "", errors.New("write a URI, as spiffe://acme/agents, or a DNS name")
	}
	return strings.ToLower(text), nil
}

// Principal returns the principal that a verified client certificate names; ok is false
// without one. Only alternative names count, not the subject.
func (c *Certificates) Principal(state *tls.ConnectionState) (who Principal, ok bool, err error) {
	if c == nil || state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return Principal{}, false, nil
	}
	byName := *c.byName.Load()
	for _, name := range namesOf(state.VerifiedChains[0][0]) {
		next, known := byName[name]
		if known && ok && next != who {
			return Principal{}, false, errSeveralNames
		}
		if known {
			who, ok = next, true
		}
	}
	return who, ok, nil
}

// namesOf are the names of a certificate in the form in which they are compared. The two
// kinds cannot be taken for each other: a URI has a colon.
func namesOf(leaf *x509.Certificate) (names []string) {
	for _, u := range leaf.URIs {
		names = append(names, u.String())
	}
	for _, dns := range leaf.DNSNames {
		if !strings.Contains(dns, ":") {
			names = append(names, strings.ToLower(dns))
		}
	}
	return names
}

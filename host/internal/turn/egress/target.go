package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// maxURL is the longest URL, in bytes.
const maxURL = 8 << 10

// target is a normalized URL. Two URLs that lead to one place have one target, and the
// matched target is the one that is sent.
type target struct {
	scheme string
	host   string
	addr   netip.Addr // valid when the host is an address
	port   uint16
	path   string // escaped, begins with a slash
	query  string
}

var defaultPorts = map[string]uint16{"http": 80, "https": 443}

// parseTarget reads an absolute URL. Its errors do not quote the URL, which may contain
// credentials.
func parseTarget(raw string) (target, error) {
	u, err := parseRaw(raw)
	if err != nil {
		return target{}, err
	}
	t := target{scheme: u.Scheme, query: escapeQuery(u.RawQuery)}
	if t.host, t.addr, err = parseHost(u.Hostname(), strings.HasPrefix(u.Host, "[")); err != nil {
		return target{}, err
	}
	if t.port, err = parsePort(u); err != nil {
		return target{}, err
	}
	if t.path, err = cleanPath(u.EscapedPath()); err != nil {
		return target{}, err
	}
	// package net/http parses the URL again before it sends it; both parses must agree.
	if again, err := url.Parse(t.String()); err != nil || again.RequestURI() != t.uri() || again.Host != t.authority() {
		return target{}, errors.New("the URL has more than one reading")
	}
	return t, nil
}

// CheckURL returns why no request is made to a URL, whatever is granted.
func CheckURL(raw string) error {
	_, err := parseTarget(raw)
	return err
}

func parseRaw(raw string) (*url.URL, error) {
	if err := checkBytes(raw); err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	if inner := new(url.Error); errors.As(err, &inner) {
		return nil, errors.New("the URL cannot be read")
	}
	switch {
	case err != nil:
		return nil, err
	case defaultPorts[u.Scheme] == 0:
		return nil, fmt.Errorf("the URL's scheme must be http or https, not %q", truncate(u.Scheme))
	case u.User != nil:
		return nil, errors.New("the URL holds credentials; send a header instead")
	case u.Opaque != "" || u.Host == "":
		return nil, errors.New("the URL has no host")
	}
	return u, nil
}

func checkBytes(raw string) error {
	if len(raw) > maxURL {
		return fmt.Errorf("the URL is longer than %d bytes", maxURL)
	}
	for _, c := range []byte(raw) {
		if c <= ' ' || c == 0x7f || c == '\\' {
			return fmt.Errorf("the URL has the character %q; escape it as %%%02X", c, c)
		}
	}
	return nil
}

func parsePort(u *url.URL) (uint16, error) {
	if u.Port() == "" {
		return defaultPorts[u.Scheme], nil
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || n == 0 {
		return 0, errors.New("the URL's port must be a number from 1 to 65535")
	}
	return uint16(n), nil
}

// escapeQuery escapes the bytes that a request line must not contain.
func escapeQuery(query string) string {
	var b strings.Builder
	for _, c := range []byte(query) {
		if c <= ' ' || c >= 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// authority is the host as written in a URL and in the Host header.
func (t target) authority() string {
	host := t.host
	if t.addr.Is6() {
		host = "[" + host + "]"
	}
	if t.port != defaultPorts[t.scheme] {
		return host + ":" + strconv.Itoa(int(t.port))
	}
	return host
}

// origin is scheme://host[:port].
func (t target) origin() string { return t.scheme + "://" + t.authority() }

// uri is the request target of the request line.
func (t target) uri() string {
	if t.query == "" {
		return t.path
	}
	return t.path + "?" + t.query
}

func (t target) String() string { return t.origin() + t.uri() }

// hostPort is host:port as package net/http passes it to a dialer.
func (t target) hostPort() string {
	return net.JoinHostPort(t.host, strconv.Itoa(int(t.port)))
}

// resolve resolves a reference in a response to t.
func (t target) resolve(reference string) (target, error) {
	if err := checkBytes(reference); err != nil {
		return target{}, err
	}
	base, err := url.Parse(t.String())
	if err != nil {
		return target{}, err
	}
	u, err := base.Parse(reference)
	if err != nil {
		return target{}, errors.New("the URL cannot be read")
	}
	u.Fragment, u.RawFragment = "", ""
	return parseTarget(u.String())
}

package client

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Options is what a client may be told. Only URL is required.
type Options struct {
	// URL is the address of the host, http://127.0.0.1:8000.
	URL string
	// Token is sent as a bearer token with every call. Empty sends none.
	Token string
	// HTTP carries the calls. It must not have an overall timeout: a post is
	// answered when its task ends. Nil means a client of our own.
	HTTP *http.Client
	// TLS is who is trusted and what is shown over https. It must be zero
	// together with an HTTP of the caller's.
	TLS TLS
	// UserAgent names the caller.
	UserAgent string
	// Patience is how long a repeatable call is repeated without success.
	// Zero means 30 seconds, a negative value that nothing is repeated.
	Patience time.Duration
	// NoWait makes a refusal by a limit (429) final. Lost connections are repeated
	// all the same.
	NoWait bool
	// Idle is how long a stream may be silent before it is opened again; a
	// host sends a ping every 15 seconds. Zero means one minute.
	Idle time.Duration
	// MaxResponse caps the size of an answer. Zero means 64 MiB.
	MaxResponse int64
	// MaxEvent caps the size of one event of a stream. Zero means 8 MiB.
	MaxEvent int
	// OnRetry is told before each repeat why, and how long the pause is.
	OnRetry func(cause error, pause time.Duration)
}

// Client calls one host as one principal. It is safe for concurrent use.
type Client struct {
	base string
	opt  Options
	http *http.Client
	own  *http.Transport // nil when the caller brought its own
	// reached is set by the first answer. Before it, a refused connection
	// means that there is no host, afterwards that it restarts.
	reached atomic.Bool
	// of is the task that is looked at with the token look; see [Client.Looking].
	of   TaskOf
	look string
}

// New returns a client of the host at o.URL. It does not connect.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("client: %q is not a URL of the form http://HOST:PORT", o.URL)
	case u.User != nil:
		return nil, errors.New("client: the URL must not hold credentials; they go into the token")
	case strings.ContainsFunc(o.Token, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		return nil, errors.New("client: the token has spaces or control characters; it is one line without any")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("client: %q must not have a query or a fragment", o.URL)
	}
	secure, err := o.TLS.read()
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if secure != nil && o.HTTP != nil {
		return nil, errors.New("client: TLS files and an HTTP client of the caller's exclude each other")
	}
	o.UserAgent = cmp.Or(o.UserAgent, "skep-client")
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	o.Idle = cmp.Or(o.Idle, time.Minute)
	o.MaxResponse = cmp.Or(o.MaxResponse, 64<<20)
	o.MaxEvent = cmp.Or(o.MaxEvent, 8<<20)
	c := &Client{base: strings.TrimRight(u.String(), "/"), opt: o, http: o.HTTP}
	if c.http == nil {
		c.own = transport(secure)
		c.http = &http.Client{Transport: c.own, CheckRedirect: refuseRedirect}
	}
	return c, nil
}

// URL is the address of the host, without a trailing slash.
func (c *Client) URL() string { return c.base }

// Close drops idle connections. The client can be used again.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

func transport(secure *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:        secure,
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        30 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxIdleConnsPerHost:    4,
		MaxResponseHeaderBytes: 256 << 10,
		ForceAttemptHTTP2:      true,
	}
}

// refuseRedirect shows a redirect as what it is: no host sends one, and a
// token must not follow it.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/quic-go/quic-go/http3"

	"skep/abi"
)

// Options are the settings of a [Client]. Zero values take the defaults.
type Options struct {
	// Timeout bounds a whole fetch: DNS, connections, redirects and the body up to its
	// last byte. Default 60 s.
	Timeout time.Duration
	// MaxRequestBody bounds the body of a request, in bytes. Default 2 MiB.
	MaxRequestBody int64
	// MaxResponseBody bounds the decoded body of a response, in bytes. Default 8 MiB.
	MaxResponseBody int64
	// MaxResponseHeader bounds the header of a response, in bytes. Default 64 KiB.
	MaxResponseHeader int64
	// ConnectTimeout bounds the part of Timeout that a connection may take: DNS, TCP and
	// TLS. Zero sets no bound of its own.
	ConnectTimeout time.Duration
	// KeepAlive leaves connections open between fetches. Only a client that never sends
	// requests of guests may set it.
	KeepAlive KeepAlive
	// MaxRedirects is the number of redirects to follow. Default 5; a negative number
	// allows none.
	MaxRedirects int
	// RootCAs replaces the system's certificate authorities.
	RootCAs *x509.CertPool
	// Resolver replaces the system's resolver.
	Resolver Resolver
	// Dial replaces the TCP dialer. It gets only checked addresses.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Resolver looks up the addresses of a name, like [net.Resolver]. It must be safe for
// concurrent use and return when ctx ends.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Policy is what one agent may do. It is read-only.
type Policy struct {
	// Table names the table of the grants in the operator's file, as in "[agents.web]".
	// Refusals name it.
	Table  string
	Grants []Grant
	// Secrets are added to requests to their hosts. If two secrets set the same header for
	// the same host, the first is sent.
	Secrets []Secret
	// AllowPrivate lets a grant that names a private address, or localhost, reach it. A
	// name that resolves to a private address stays refused.
	AllowPrivate bool
	// PrivateKey is what opens private addresses, for refusals; by default it is
	// http_private of the Table.
	PrivateKey string
	// PrivateNames lets a grant of one host name reach the private addresses that the name
	// resolves to. It is for hosts that the operator chose: the DNS of such a name can
	// point at any machine of the private network.
	PrivateNames bool
	// NoPublicHTTP refuses http URLs at public addresses, where everyone on the path can
	// read the request. Private addresses that the policy opens stay reachable over http.
	NoPublicHTTP bool
	// HidePath leaves the path out of errors, for URLs whose path may be a secret.
	HidePath bool
	// TLS, if set, has the authorities that vouch for the host in place of the client's,
	// and the certificate that the host is shown. Its connections serve one request each.
	TLS *tls.Config `json:"-"`
	// HTTP2 is for https URLs: they are reached by HTTP/2 over TLS 1.3, and by nothing older
	// but for a request that upgrades its connection.
	HTTP2 bool
	// OfferHTTP2 lets the host of an https URL choose between HTTP/2 and HTTP/1.1. Its connections
	// serve one request each.
	OfferHTTP2 bool
	// HTTP3 is for https URLs: they are reached by HTTP/3 alone, but for a request that upgrades
	// its connection.
	HTTP3 bool
}

// inTable is the suffix of a refusal that names the table of the grants.
func (p Policy) inTable() string {
	if p.Table == "" {
		return ""
	}
	return " in " + p.Table
}

// Client makes requests for guests. It keeps no state between two fetches, except
// connections if [KeepAlive] is set. It is safe for concurrent use; one client serves the
// whole host.
type Client struct {
	opt Options
	// pool is nil unless connections are kept.
	pool connPool
	// pool3 has those of HTTP/3.
	pool3 map[dialRules]*http3.Transport
}

// New returns a client. It starts nothing; see [Client.Close].
func New(o Options) *Client {
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.MaxRequestBody = cmp.Or(o.MaxRequestBody, 2<<20)
	o.MaxResponseBody = cmp.Or(o.MaxResponseBody, 8<<20)
	o.MaxResponseHeader = cmp.Or(o.MaxResponseHeader, 64<<10)
	o.MaxRedirects = cmp.Or(o.MaxRedirects, 5)
	if o.Resolver == nil {
		o.Resolver = &net.Resolver{PreferGo: true}
	}
	o.KeepAlive.IdleTimeout = cmp.Or(o.KeepAlive.IdleTimeout, 90*time.Second)
	c := &Client{opt: o}
	if o.KeepAlive.MaxIdlePerHost > 0 {
		c.opt.ConnectTimeout = cmp.Or(o.ConnectTimeout, o.Timeout) // a pooled connection outlives one fetch
		c.pool = newConnPool(c)
		c.pool3 = newHTTP3Pool(c)
	}
	return c
}

var errTimeout = errors.New("the fetch took too long")

// Fetch makes one request under a policy and follows its redirects. key is sent as
// Idempotency-Key unless it is empty or the grant forbids it. A response with any status
// is a result. Errors have one of the reasons of this package:
//
//   - INVALID: the request itself.
//   - DENIED: no grant, or an address that is not public. The message names
//     the line to add.
//   - UNAVAILABLE: DNS, connections, TLS, a response that breaks off. The
//     request may have arrived.
//   - DEADLINE, CANCELLED: the fetch or its caller ran out of time, or the
//     caller cancelled it.
//   - LIMIT: too large, or too many redirects. The message names the limit.
//
// Neither result nor error contains the value of a secret of the policy.
func (c *Client) Fetch(ctx context.Context, p Policy, key string, req abi.FetchRequest) (abi.FetchResponse, *abi.Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.opt.Timeout, errTimeout)
	defer cancel()
	h, broken := c.firstHop(p, key, req)
	if broken != nil {
		return abi.FetchResponse{}, broken
	}
	answer, broken := h.follow(ctx)
	if broken != nil {
		broken.Message = h.scrub.Text(broken.Message)
		return abi.FetchResponse{}, broken
	}
	return answer, nil
}

// firstHop checks a request and returns its first hop.
func (c *Client) firstHop(p Policy, key string, req abi.FetchRequest) (*hop, *abi.Error) {
	if !slices.Contains(methods(), req.Method) {
		return nil, fault(abi.CodeInvalid, ReasonRequest, "the method must be one of %s, not %q", strings.Join(methods(), ", "), truncate(req.Method))
	}
	t, err := parseTarget(req.URL)
	if err != nil {
		return nil, fault(abi.CodeInvalid, ReasonRequest, "%v", err)
	}
	body, broken := c.requestBody(req)
	if broken != nil {
		return nil, broken
	}
	header, broken := requestHeader(req.Headers)
	if broken != nil {
		return nil, broken
	}
	h := &hop{client: c, policy: p, key: key, scrub: NewScrubber(p.Secrets...), method: req.Method, target: t, header: header, body: body}
	grant, ok := findGrant(p.Grants, h.method, t)
	if !ok {
		return nil, h.grantError(ReasonGrant, "")
	}
	if err := checkHostHeaders(header, h.secrets(), key != "" && !grant.NoKey); err != nil {
		return nil, fault(abi.CodeInvalid, ReasonHeader, "%v", err)
	}
	h.grant = grant
	return h, nil
}

// Check returns the error with which [Client.Fetch] would refuse a request before any
// network access, or nil.
func (c *Client) Check(p Policy, req abi.FetchRequest) *abi.Error {
	_, broken := c.firstHop(p, placeholderKey, req)
	if broken == nil {
		return nil
	}
	broken.Message = NewScrubber(p.Secrets...).Text(broken.Message)
	return broken
}

// placeholderKey stands for the key of a request that has no key yet.
const placeholderKey = "key"

func (c *Client) requestBody(req abi.FetchRequest) ([]byte, *abi.Error) {
	if req.Body != "" && len(req.BodyBase64) > 0 {
		return nil, fault(abi.CodeInvalid, ReasonRequest, "the request has both body and body_base64; give one")
	}
	body := req.BodyBase64
	if req.Body != "" {
		body = []byte(req.Body)
	}
	if int64(len(body)) > c.opt.MaxRequestBody {
		return nil, fault(abi.CodeLimit, ReasonSent, "the body has %d bytes, at most %d ([limits.http] request)", len(body), c.opt.MaxRequestBody)
	}
	return body, nil
}

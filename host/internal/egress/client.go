package egress

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"skep/abi"
)

// Options are the settings of a [Client]; zeros take the defaults.
type Options struct {
	// Timeout is the time of a whole fetch: names, connections, redirects and
	// the last byte of the body. Default 60 s.
	Timeout time.Duration
	// MaxSent bounds the body of a request, in bytes. Default 2 MiB.
	MaxSent int64
	// MaxBody bounds the body of an answer, decoded, in bytes. Default 8 MiB.
	MaxBody int64
	// MaxHeader bounds the header of an answer, in bytes. Default 64 KiB.
	MaxHeader int64
	// Connect bounds the part of Timeout that a connection may take: name, TCP
	// and TLS. Zero sets no bound of its own.
	Connect time.Duration
	// Keep leaves connections open between fetches. Only a client whose every
	// request is the host's own may.
	Keep Keep
	// MaxRedirects is how many redirects are followed. Default 5; a negative
	// number allows none.
	MaxRedirects int
	// RootCAs replaces the system's certificate authorities.
	RootCAs *x509.CertPool
	// Resolver replaces the system's resolver.
	Resolver Resolver
	// Dial replaces the opening of a TCP connection. It gets only addresses
	// that have been checked.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Resolver looks up the addresses of a name; [net.Resolver] is one. It must be
// safe for concurrent use and return when ctx ends.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Policy is what one agent may do. It is only read.
type Policy struct {
	// Table is where the grants stand in the operator's file, as in
	// "[agents.web]". Refusals name it.
	Table  string
	Grants []Grant
	// Secrets are added to requests to their hosts. Of two for one host and
	// one header, the first is sent.
	Secrets []Secret
	// AllowPrivate lets a grant that names a private address, or localhost,
	// reach it. A name that resolves to a private address stays refused.
	AllowPrivate bool
	// PrivateNames lets a grant of one host's name reach the private addresses
	// that it resolves to. It is for hosts that the operator names: whoever
	// answers for such a name chooses a machine of the private network.
	PrivateNames bool
	// NoPublicHTTP keeps http URLs from public addresses, where anybody on the way
	// reads what is sent. Those that the others open are reached.
	NoPublicHTTP bool
}

// in names the table of the grants in a refusal.
func (p Policy) in() string {
	if p.Table == "" {
		return ""
	}
	return " in " + p.Table
}

// Client makes requests for guests. It keeps nothing between two fetches, except
// connections when it is told to, and is safe for concurrent use. One serves the
// whole host.
type Client struct {
	o Options
	// kept is nil when nothing is.
	kept keeper
}

// New returns a client. It starts nothing; see [Client.Close].
func New(o Options) *Client {
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.MaxSent = cmp.Or(o.MaxSent, 2<<20)
	o.MaxBody = cmp.Or(o.MaxBody, 8<<20)
	o.MaxHeader = cmp.Or(o.MaxHeader, 64<<10)
	o.MaxRedirects = cmp.Or(o.MaxRedirects, 5)
	if o.Resolver == nil {
		o.Resolver = &net.Resolver{PreferGo: true}
	}
	o.Keep.For = cmp.Or(o.Keep.For, 90*time.Second)
	c := &Client{o: o}
	if o.Keep.Idle > 0 {
		c.o.Connect = cmp.Or(o.Connect, o.Timeout) // it is opened for more than one fetch
		c.kept = newKeeper(c)
	}
	return c
}

var errTimeout = errors.New("the fetch took too long")

// Fetch makes one request under a policy and follows its redirects. key is
// sent as Idempotency-Key unless it is empty or the grant says no. Any status
// is an answer. Errors have one of the reasons of this package:
//
//   - INVALID: the request itself.
//   - DENIED: no grant, or an address that is not public. The message names
//     the line to add.
//   - UNAVAILABLE: names, connections, TLS, an answer that breaks off. The
//     request may have arrived.
//   - DEADLINE, CANCELLED: the fetch or the caller ran out of time, the caller
//     called it off.
//   - LIMIT: too large, or too many redirects. The message names the cap.
//
// Neither answer nor error holds the value of a secret of the policy.
func (c *Client) Fetch(ctx context.Context, p Policy, key string, req abi.FetchRequest) (abi.FetchResponse, *abi.Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.Timeout, errTimeout)
	defer cancel()
	h, broken := c.first(p, key, req)
	if broken != nil {
		return abi.FetchResponse{}, broken
	}
	answer, broken := h.follow(ctx)
	if broken != nil {
		broken.Message = h.scrub.text(broken.Message)
		return abi.FetchResponse{}, broken
	}
	return answer, nil
}

// first makes the first hop of a request.
func (c *Client) first(p Policy, key string, req abi.FetchRequest) (*hop, *abi.Error) {
	if !slices.Contains(methods(), req.Method) {
		return nil, fault(abi.CodeInvalid, ReasonRequest, "the method must be one of %s, not %q", strings.Join(methods(), ", "), cut(req.Method))
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
	h := &hop{c: c, policy: p, key: key, scrub: newScrubber(p.Secrets), method: req.Method, to: t, header: header, body: body}
	grant, ok := covering(p.Grants, h.method, t)
	if !ok {
		return nil, h.ungranted(ReasonGrant, "")
	}
	if err := ownHeaders(header, h.secrets(), key != "" && !grant.NoKey); err != nil {
		return nil, fault(abi.CodeInvalid, ReasonHeader, "%v", err)
	}
	h.grant = grant
	return h, nil
}

// Check answers what [Client.Fetch] would refuse without asking the network; nil
// when it would ask.
func (c *Client) Check(p Policy, req abi.FetchRequest) *abi.Error {
	_, broken := c.first(p, anyKey, req)
	if broken == nil {
		return nil
	}
	broken.Message = newScrubber(p.Secrets).text(broken.Message)
	return broken
}

// anyKey stands for the key of a request that has none yet.
const anyKey = "key"

func (c *Client) requestBody(req abi.FetchRequest) ([]byte, *abi.Error) {
	if req.Body != "" && len(req.BodyBase64) > 0 {
		return nil, fault(abi.CodeInvalid, ReasonRequest, "the request has both body and body_base64; give one")
	}
	body := req.BodyBase64
	if req.Body != "" {
		body = []byte(req.Body)
	}
	if int64(len(body)) > c.o.MaxSent {
		return nil, fault(abi.CodeLimit, ReasonSent, "the body has %d bytes, at most %d ([limits.http] request)", len(body), c.o.MaxSent)
	}
	return body, nil
}

package egress

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"
)

// Keep says which connections a [Client] leaves open for later requests.
type Keep struct {
	// Idle bounds those to one host that nobody uses. Zero leaves none open.
	Idle int
	// For is how long one is left open when nobody uses it. Default 90 s.
	For time.Duration
}

// keeper has the connections between two requests, those of each reach apart: a
// request must not use one that it could not have opened.
type keeper map[reach]*http.Transport

// reach is what a request says of the addresses where it may go.
type reach struct{ private, names, secure bool }

func newKeeper(c *Client) keeper {
	k, either := keeper{}, []bool{false, true}
	for _, private := range either {
		for _, names := range either {
			for _, secure := range either {
				k[reach{private, names, secure}] = c.keeping(reach{private, names, secure})
			}
		}
	}
	return k
}

func (h *hop) reach() reach {
	return reach{h.policy.AllowPrivate, h.policy.PrivateNames && h.grant.hosts == exact, h.policy.NoPublicHTTP}
}

// keeping makes a transport that goes where a hop of its own would.
func (c *Client) keeping(r reach) *http.Transport {
	dial := func(scheme string) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, _, address string) (net.Conn, error) {
			t, err := parseTarget(scheme + "://" + address)
			if err != nil {
				return nil, err
			}
			h := &hop{
				c: c, policy: Policy{AllowPrivate: r.private, PrivateNames: r.names, NoPublicHTTP: r.secure},
				grant: Grant{hosts: exact}, to: t, scrub: newScrubber(nil),
			}
			l, broken := h.line(ctx)
			if broken != nil {
				return nil, &unreached{broken}
			}
			return l, nil
		}
	}
	return &http.Transport{
		DisableCompression:     true,
		MaxResponseHeaderBytes: c.o.MaxHeader,
		DialContext:            dial("http"),
		DialTLSContext:         dial("https"),
		MaxIdleConnsPerHost:    c.o.Keep.Idle,
		IdleConnTimeout:        c.o.Keep.For,
	}
}

// Close closes the connections that were left open. The client may be used
// again. One that keeps none needs no Close.
func (c *Client) Close() {
	for _, t := range c.kept {
		t.CloseIdleConnections()
	}
}

// sendKept makes the request on a connection that an earlier one may have left.
// The line is that of the connection, nil when there was none.
func (h *hop) sendKept(req *http.Request) (resp *http.Response, l *line, err error) {
	trace := &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			l = got.Conn.(*line)
			l.take()
		},
		PutIdleConn: func(error) { l.put() },
	}
	resp, err = h.c.kept[h.reach()].RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	return resp, l, err
}

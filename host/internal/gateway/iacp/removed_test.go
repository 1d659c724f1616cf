package iacp_test

import (
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
)

// removing is a runtime whose configuration loses all partners.
type removing struct {
	gateway.Runtime
	removed atomic.Bool
}

func (r *removing) Renew(c gateway.Caller) (gateway.Caller, error) {
	if r.removed.Load() {
		return c, gateway.ErrDenied
	}
	return r.Runtime.Renew(c)
}

// TestRemovedPartner (I-058): the connection of a partner that the configuration has lost ends at the
// next heartbeat, with the reason.
func TestRemovedPartner(t *testing.T) {
	t.Parallel()
	rt := &removing{}
	c := newSite(t, func(o *iacp.Options) {
		rt.Runtime = o.Runtime
		o.Runtime, o.Heartbeat = rt, 20*time.Millisecond
	}).dial(t)
	if err := c.Send(task("hello").Text()); err != nil {
		t.Fatal(err)
	}
	readSilently(t, c, "task_response")
	rt.removed.Store(true)
	for {
		got, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		if got.Type == "heartbeat" {
			continue
		}
		if got.Type != "connection_close" || got.Payload["reason"] != "the peer is not let in any more" {
			t.Fatalf("got %s", got.Raw)
		}
		break
	}
	ends(t, c.Conn)
}

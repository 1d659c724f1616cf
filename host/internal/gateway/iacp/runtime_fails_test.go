package iacp_test

import (
	"context"
	"io"
	"net"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
)

// brokenRuntime takes no question: Ask returns its error.
type brokenRuntime struct {
	gateway.Runtime
	err error
}

// Ask implements [gateway.Runtime].
func (rt *brokenRuntime) Ask(context.Context, gateway.Caller, gateway.Ask) (gateway.Exchange, error) {
	return gateway.Exchange{}, rt.err
}

// TestRuntimeFailsLikeConnection (I-040): a question is refused, and its connection goes on, when the
// runtime fails with an error that could be the end of a connection.
func TestRuntimeFailsLikeConnection(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"deadline": context.DeadlineExceeded, "end": io.ErrUnexpectedEOF, "closed": net.ErrClosed,
		"dial": &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(o *iacp.Options) { o.Runtime = &brokenRuntime{o.Runtime, err} })
			c := s.dial(t)
			for range 2 {
				m := task("hello")
				if got := exchange(t, c, m, "error_response"); got.Parent != m.ID || got.Payload["error_code"] != "TIMEOUT" || got.Payload["retry_allowed"] != true {
					t.Errorf("the answer is %+v", got)
				}
			}
		})
	}
}

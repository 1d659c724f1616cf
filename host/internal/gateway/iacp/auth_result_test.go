package iacp_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/iacptest"
)

// TestAuthResultFirst (I-053, I-054): a peer whose messages wait for a connection reads its auth_result
// before any of them.
func TestAuthResultFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p, _ := s.rt.Partner("depot")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			if s.g.Carry(short, p, delivery(uuid.NewString())).State == gateway.Later {
				time.Sleep(10 * time.Microsecond)
			}
			cancel()
		}
	}()
	defer func() { stop(); <-ended }()
	for range 200 {
		c, err := iacptest.Dial(s.addr, token, "ack")
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
}

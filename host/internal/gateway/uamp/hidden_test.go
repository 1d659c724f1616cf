package uamp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
)

// hiding is a runtime whose streams end as their agents are hidden.
type hiding struct {
	*gatewaytest.Runtime
	hidden chan struct{}
}

// FollowWhole implements [gateway.Runtime].
func (h hiding) FollowWhole(ctx context.Context, x gateway.Exchange) (gateway.Stream, error) {
	s, err := h.Runtime.FollowWhole(ctx, x)
	return hidingStream{s, h.hidden}, err
}

type hidingStream struct {
	gateway.Stream
	hidden <-chan struct{}
}

func (s hidingStream) Next(ctx context.Context) (gateway.Piece, error) {
	waiting, end := gateway.EndWhen(ctx, s.hidden)
	defer end()
	p, err := s.Stream.Next(waiting)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("the agent is not shown to you any more: %w", gateway.ErrDenied)
	}
	return p, err
}

// TestStreamHidden (U-051, U-105): a stream whose agent is hidden from its reader ends with a delta error,
// or on a connection of frames with an error about its envelope, and is refused afterwards.
func TestStreamHidden(t *testing.T) {
	t.Parallel()
	h, hidden := (*hive)(nil), make(chan struct{})
	h = newHive(t, func(o *uamp.Options) { o.Runtime = hiding{o.Runtime.(*gatewaytest.Runtime), hidden} })
	more := make(chan struct{})
	h.expose("calc", func(ctx context.Context, turn *gatewaytest.Turn) gateway.Answer {
		turn.Chunk("one")
		close(more)
		<-ctx.Done()
		return gateway.Answer{}
	})
	at := h.take(t, newAsk("calc", "go")).location
	<-more
	close(hidden)
	lines := h.read(t, at)
	last := delta(t, lines[len(lines)-1])
	var payload struct{ Code, Message string }
	if err := json.Unmarshal(last.Payload, &payload); err != nil || last.Type != "error" || payload.Code != "4.03" || !strings.Contains(payload.Message, "not shown") || last.Seq != len(lines)-1 {
		t.Errorf("%q: %v", lines, err)
	}
}

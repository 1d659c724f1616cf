package door

import (
	"context"
	"slices"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/flow"
	"skep/host/internal/swarm"
)

// Follow is [gateway.Runtime]'s.
func (d *Door) Follow(ctx context.Context, x gateway.Exchange, from int64) (gateway.Stream, error) {
	if x.Receipt == nil {
		return nil, notOwed(x)
	}
	feed, err := d.opt.Swarm.Follow(ctx, x.Task, max(0, x.Cursor-1))
	if err != nil {
		return nil, foreignError(err)
	}
	feed.StayOpenDuringPauses()
	return stream{flow.Open(feed, &watched{door: d, x: x}, x.Agent, x.Receipt.Submission().Row, from)}, nil
}

// stream is a reader whose errors are a gateway's.
type stream struct{ *flow.Reader }

func (s stream) Next(ctx context.Context) (gateway.Piece, error) {
	p, err := s.Reader.Next(ctx)
	return p, foreignError(err)
}

// watched finds the events that matter to the caller of an exchange.
type watched struct {
	door *Door
	x    gateway.Exchange
	// asked are the ids of the questions that were shown last.
	asked []string
}

// PieceOf is [flow.Exchange]'s.
func (w *watched) PieceOf(ctx context.Context, e swarm.Event) (gateway.Piece, bool, error) {
	if e.Name != "new_message" && e.Name != "task_complete" && e.Name != "task_error" && e.Name != "breakpoint_tool_call" {
		return gateway.Piece{}, false, nil
	}
	s, err := w.door.opt.Swarm.LookExchange(ctx, w.x.Receipt)
	if err != nil {
		return gateway.Piece{}, false, err
	}
	if at := s.Answer.Cursor; at > 0 {
		if at != e.Seq {
			return gateway.Piece{}, false, nil // the answer comes later in the log
		}
		a := finalAnswer(s.Answer)
		return gateway.Piece{Kind: gateway.End, Answer: &a}, true, nil
	}
	if len(s.Needs) == 0 || slices.Equal(s.Needs, w.asked) {
		return gateway.Piece{}, false, nil
	}
	w.asked = s.Needs
	a, err := newAnswer(s)
	return gateway.Piece{Kind: gateway.Asked, Answer: &a}, err == nil, err
}

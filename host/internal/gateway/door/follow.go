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
	feed, err := d.openFeed(ctx, x)
	if err != nil {
		return nil, err
	}
	return stream{flow.Open(feed, &watched{door: d, x: x}, x.Agent, x.Receipt.Submission().Row, from), d, []gateway.Exchange{x}}, nil
}

// FollowWhole is [gateway.Runtime]'s.
func (d *Door) FollowWhole(ctx context.Context, x gateway.Exchange) (gateway.Stream, error) {
	feed, err := d.openFeed(ctx, x)
	if err != nil {
		return nil, err
	}
	return stream{flow.OpenWhole(feed, &watched{door: d, x: x}, x.Agent, x.Receipt.Submission().Row), d, []gateway.Exchange{x}}, nil
}

// openFeed opens the log of an exchange's task where the exchange begins.
func (d *Door) openFeed(ctx context.Context, x gateway.Exchange) (*swarm.Feed, error) {
	if x.Receipt == nil {
		return nil, notOwed(x)
	}
	feed, err := d.opt.Swarm.Follow(ctx, x.Task, max(0, x.Cursor-1))
	if err != nil {
		return nil, foreignError(ctx, err)
	}
	feed.StayOpenDuringPauses()
	feed.CheckAtReplacements(func() error { return d.checkVisible(x) })
	feed.BeginWithRunningTurns()
	return feed, nil
}

// FollowEach is [gateway.Runtime]'s.
func (d *Door) FollowEach(ctx context.Context, of []gateway.Exchange) (gateway.Stream, error) {
	begin := of[0].Cursor
	for _, x := range of {
		if x.Receipt == nil {
			return nil, notOwed(x)
		}
		begin = min(begin, x.Cursor)
	}
	feed, err := d.opt.Swarm.Follow(ctx, of[0].Task, max(0, begin-1))
	if err != nil {
		return nil, foreignError(ctx, err)
	}
	feed.StayOpenDuringPauses()
	feed.CheckAtReplacements(func() error { return d.checkVisible(of...) })
	group := flow.OpenGroup(feed)
	for _, x := range of {
		group.Add(&watched{door: d, x: x}, x.Agent, x.Receipt.Submission().Row)
	}
	return stream{group, d, of}, nil
}

// stream is a reader whose errors are a gateway's. It ends when its caller may see no
// agent of it.
type stream struct {
	gateway.Stream
	door *Door
	of   []gateway.Exchange
}

func (s stream) Next(ctx context.Context) (gateway.Piece, error) {
	p, err := s.Stream.Next(ctx)
	if err != nil {
		return p, foreignError(ctx, err)
	}
	if err := s.door.checkVisible(s.of...); err != nil {
		return gateway.Piece{}, err
	}
	return p, nil
}

// checkVisible refuses exchanges of which a reload has hidden an agent from its caller.
func (d *Door) checkVisible(of ...gateway.Exchange) error {
	for _, x := range of {
		c, err := d.opt.Renew(x.Caller)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(d.opt.ExposedAgents(c), func(a gateway.ExposedAgent) bool {
			return a.Swarm == x.Task.Swarm && (a.Name == x.Agent || x.Agent == "")
		}) {
			return denied("the agent %q is not shown to you any more", x.Agent)
		}
	}
	return nil
}

// watched finds the events that matter to the caller of an exchange.
type watched struct {
	door *Door
	x    gateway.Exchange
	// asked are the ids of the questions that were shown last, answered is the cursor of the
	// answer, 0 while it is not known.
	asked    []string
	answered int64
}

// PieceOf is [flow.Exchange]'s.
func (w *watched) PieceOf(ctx context.Context, e swarm.Event) (gateway.Piece, bool, error) {
	if e.Name != "new_message" && e.Name != "task_complete" && e.Name != "task_error" && e.Name != "breakpoint_tool_call" {
		return gateway.Piece{}, false, nil
	}
	if w.answered > e.Seq {
		return gateway.Piece{}, false, nil // the answer comes later in the log
	}
	s, err := w.door.opt.Swarm.LookExchange(ctx, w.x.Receipt, e)
	if err != nil {
		return gateway.Piece{}, false, err
	}
	if w.answered = s.Answer.Cursor; w.answered == e.Seq {
		a := finalAnswer(s.Answer, w.x)
		return gateway.Piece{Kind: gateway.End, Answer: &a}, true, nil
	}
	if w.answered > 0 {
		return gateway.Piece{}, false, nil
	}
	if len(s.Needs) == 0 || slices.Equal(s.Needs, w.asked) {
		return gateway.Piece{}, false, nil
	}
	w.asked = s.Needs
	a, err := newAnswer(s, w.x)
	return gateway.Piece{Kind: gateway.Asked, Answer: &a}, err == nil, err
}

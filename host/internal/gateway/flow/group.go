package flow

import (
	"context"
	"errors"
	"io"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// Group reads the exchanges of one message to several agents as one stream. It is used by one
// goroutine.
//
// Its order is the log's. Chunks of running turns have no order yet, so a chunk is shown when
// its turn is over. Progress, which has no number, is shown when it comes.
type Group struct {
	feed    Feed
	readers []*Reader
	pieces  []gateway.Piece
	ended   error
}

// OpenGroup reads a feed that begins where the first exchange does. [Group.Add] names the
// exchanges before the first piece is read. The group closes the feed.
func OpenGroup(feed Feed) *Group { return &Group{feed: feed} }

// Add adds the exchange of an agent, with the row of its message.
func (g *Group) Add(x Exchange, agent string, row int64) {
	r := Open(g.feed, x, agent, row, 0)
	r.logOnly = true
	g.readers = append(g.readers, r)
}

// Close ends the group and its feed.
func (g *Group) Close() error {
	g.feed.Close()
	return nil
}

// Next returns the next piece of any agent; see [gateway.Stream].
func (g *Group) Next(ctx context.Context) (gateway.Piece, error) {
	for len(g.pieces) == 0 && g.ended == nil {
		events, err := g.feed.Next(ctx)
		if err != nil {
			return gateway.Piece{}, err
		}
		for _, e := range events {
			if g.ended = g.readEvent(ctx, e); g.ended != nil {
				break
			}
		}
	}
	if len(g.pieces) == 0 {
		return gateway.Piece{}, g.ended
	}
	p := g.pieces[0]
	g.pieces = g.pieces[1:]
	return p, nil
}

// readEvent reads an event for each exchange that has not ended. It returns io.EOF when all have.
func (g *Group) readEvent(ctx context.Context, e swarm.Event) error {
	open := 0
	for _, r := range g.readers {
		if r.ended != nil {
			continue
		}
		r.ended = r.readEvent(ctx, e)
		for _, p := range r.pieces {
			p.Agent = r.agent
			g.pieces = append(g.pieces, p)
		}
		r.pieces = nil
		switch {
		case r.ended == nil:
			open++
		case !errors.Is(r.ended, io.EOF):
			return r.ended
		}
	}
	if open == 0 {
		return io.EOF
	}
	return nil
}

package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// Feed is the log of a task and what its running turns emit, as [swarm.Feed] has it.
type Feed interface {
	Next(ctx context.Context) ([]swarm.Event, error)
	Close()
}

// Exchange is what a reader needs of its exchange.
type Exchange interface {
	// PieceOf returns what an event of the log means for the exchange: an End, an Asked, or
	// nothing (false).
	PieceOf(ctx context.Context, e swarm.Event) (gateway.Piece, bool, error)
}

// Reader reads the pieces of one exchange. It is used by one goroutine.
//
// The asked agent handles one message of a task at a time, so that its chunks have one
// order: turn by turn, as its agent_output events stand in the log. A chunk of a running
// turn is shown before that event is written; the reader remembers a hash of it until
// the event confirms it. Turns that work on another exchange of the agent are not shown.
// A feed that begins with the running turns has what they have emitted before, so that it
// does not matter when a reader comes.
type Reader struct {
	feed     Feed
	exchange Exchange
	agent    string
	row      int64
	// from is the first chunk to return, chunks how many there were so far.
	from, chunks int64
	// logOnly means that no chunk is shown before the log has it, whole that progress is read
	// from the log as chunks are.
	logOnly, whole bool
	ahead          ahead
	pieces         []gateway.Piece
	ended          error
}

// Open reads the exchange of an agent, with the row of its message, from a chunk on. The
// feed begins where the exchange does; the reader closes it.
func Open(feed Feed, x Exchange, agent string, row, from int64) *Reader {
	return &Reader{feed: feed, exchange: x, agent: agent, row: row, from: from, ahead: newAhead()}
}

// OpenWhole reads the exchange from its start, with progress in its place among the chunks: the
// pieces before the end are the same on every read.
func OpenWhole(feed Feed, x Exchange, agent string, row int64) *Reader {
	r := Open(feed, x, agent, row, 0)
	r.whole = true
	return r
}

// Close ends the reader and its feed.
func (r *Reader) Close() error {
	r.feed.Close()
	return nil
}

// Next returns the next piece; see [gateway.Stream].
func (r *Reader) Next(ctx context.Context) (gateway.Piece, error) {
	for len(r.pieces) == 0 && r.ended == nil {
		events, err := r.feed.Next(ctx)
		if err != nil {
			return gateway.Piece{}, err
		}
		for _, e := range events {
			if err := r.readEvent(ctx, e); err != nil {
				r.ended = err
				break
			}
		}
	}
	if len(r.pieces) == 0 {
		return gateway.Piece{}, r.ended
	}
	p := r.pieces[0]
	r.pieces = r.pieces[1:]
	return p, nil
}

// emitted is the data of the events of op emit, volatile or logged.
type emitted struct {
	Caller   string   `json:"caller"`
	Turn     int64    `json:"turn"`
	N        int64    `json:"n"`
	Text     string   `json:"text"`
	Fraction *float64 `json:"fraction"`
	Cuts     []int    `json:"cuts"`
	Exchange int64    `json:"exchange"`
	// Reports is the progress among the chunks, in order: At counts the chunks before it.
	Reports []struct {
		At       int      `json:"at"`
		Text     string   `json:"text"`
		Fraction *float64 `json:"fraction"`
	} `json:"reports"`
}

// piecesOf are the chunks that an event of several emissions has, for a whole reader with the
// progress among them.
func (r *Reader) piecesOf(k emitted) (list []gateway.Piece, err error) {
	chunks, err := cutText(k.Text, k.Cuts)
	reports := k.Reports
	for n := range len(chunks) + 1 {
		for ; r.whole && len(reports) > 0 && reports[0].At <= n; reports = reports[1:] {
			list = append(list, gateway.Piece{Kind: gateway.Progress, Text: reports[0].Text, Fraction: reports[0].Fraction})
		}
		if n < len(chunks) {
			list = append(list, gateway.Piece{Kind: gateway.Chunk, Text: chunks[n]})
		}
	}
	return list, err
}

func (r *Reader) readEvent(ctx context.Context, e swarm.Event) error {
	switch e.Name {
	case "agent_progress", "agent_chunk", "agent_note", "agent_output", "agent_emitted":
		var k emitted
		if err := json.Unmarshal(e.Extra, &k); err != nil {
			return fmt.Errorf("read event %d (%s): %w", e.Seq, e.Name, err)
		}
		if k.Caller != r.agent || k.Exchange != 0 && k.Exchange != r.row {
			return nil
		}
		switch e.Name {
		case "agent_output":
			return r.readOutput(k)
		case "agent_emitted":
			return r.readRunning(k)
		}
		return r.readVolatile(e.Name, k)
	}
	p, ok, err := r.exchange.PieceOf(ctx, e)
	if err != nil || !ok {
		return err
	}
	r.addPiece(p)
	if p.Kind == gateway.End {
		return io.EOF
	}
	return nil
}

// readVolatile shows an emission of a running turn.
func (r *Reader) readVolatile(name string, k emitted) error {
	if !r.ahead.follows(k) {
		return nil // some were lost: the rest of the turn waits for its output
	}
	switch name {
	case "agent_progress":
		p := gateway.Piece{Kind: gateway.Progress, Text: k.Text, Fraction: k.Fraction}
		if r.whole {
			return r.readAhead(p)
		}
		r.addPiece(p)
	case "agent_chunk":
		return r.readAhead(gateway.Piece{Kind: gateway.Chunk, Text: k.Text})
	}
	return nil
}

// readRunning shows what a turn had emitted when the reader came.
func (r *Reader) readRunning(k emitted) error {
	pieces, err := r.piecesOf(k)
	if err != nil {
		return err
	}
	r.ahead.begin(k.Turn, k.N)
	for _, p := range pieces {
		if err := r.readAhead(p); err != nil {
			return err
		}
	}
	return nil
}

// readAhead shows a piece that the log does not have.
func (r *Reader) readAhead(p gateway.Piece) error {
	if r.logOnly {
		return nil
	}
	fresh, err := r.ahead.addPiece(p)
	if fresh {
		r.addPiece(p)
	}
	return err
}

// readOutput confirms what was shown of a turn and shows the rest.
func (r *Reader) readOutput(k emitted) error {
	pieces, err := r.piecesOf(k)
	if err != nil {
		return err
	}
	shown, err := r.ahead.confirm(k, pieces)
	if err != nil {
		return err
	}
	for _, p := range pieces[shown:] {
		r.addPiece(p)
	}
	return nil
}

// addPiece numbers a piece, and shows it unless it is a chunk before the first one.
func (r *Reader) addPiece(p gateway.Piece) {
	p.N = r.chunks
	if p.Kind == gateway.Chunk {
		r.chunks++
	}
	if p.Kind != gateway.Chunk || p.N >= r.from {
		r.pieces = append(r.pieces, p)
	}
}

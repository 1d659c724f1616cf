package gatewaytest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// exchangeKey identifies an exchange: ids belong to the caller that chose them.
type exchangeKey struct{ tenant, owner, id string }

func owner(c gateway.Caller) string {
	if c.IsUser() {
		return string(c.Principal.Role) + ":" + c.Principal.ID
	}
	return "swarm:" + c.Realm
}

func keyOf(c gateway.Caller, id string) exchangeKey {
	return exchangeKey{c.Principal.Tenant, owner(c), id}
}

// exchange is an accepted message. rt.mu guards its fields.
type exchange struct {
	rt        *Runtime
	key       exchangeKey
	asked     gateway.Ask
	x         gateway.Exchange
	questions []*question
	answer    *gateway.Answer
	pieces    []gateway.Piece
	chunks    int64
	changed   chan struct{} // closed and replaced by every change
	cancel    context.CancelFunc
}

// accepted is what an id of a message stands for: its exchange, or for a reply the
// exchange that goes on.
type accepted struct {
	digest [32]byte
	note   []byte
	*exchange
}

type question struct {
	gateway.Question
	replied chan reply // of one reply
}

type reply struct {
	text   string
	failed bool
}

// repeat answers a message whose id was used before. rt.mu is held.
func (e accepted) repeat(a gateway.Ask) (gateway.Exchange, error) {
	if e.digest != a.Digest {
		return gateway.Exchange{}, fmt.Errorf("another message has the id %q: %w", a.ID, gateway.ErrConflict)
	}
	x := e.x
	x.Duplicate = true
	return x, nil
}

// reply brings the answer to a question to the agent that waits for it. rt.mu is held.
func (rt *Runtime) reply(c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	found := false
	for _, e := range rt.order {
		if e.key.owner != owner(c) || e.key.tenant != c.Principal.Tenant {
			continue
		}
		e.questions = slices.DeleteFunc(e.questions, func(q *question) bool {
			r, ok := replyTo(q.Question, a)
			if !ok {
				return false
			}
			q.replied <- r
			rt.exchanges[keyOf(c, a.ID)] = accepted{a.Digest, a.Note, e}
			found = true
			return true
		})
		if found {
			e.change()
			return e.x, nil
		}
	}
	return gateway.Exchange{}, fmt.Errorf("no such question: %w", gateway.ErrUnknown)
}

func replyTo(q gateway.Question, a gateway.Ask) (reply, bool) {
	if a.Kind == gateway.Answers {
		return reply{text: a.Body}, q.Call == "" && q.ID == a.Answers
	}
	for _, r := range a.Results {
		if q.Call != "" && r.Call == q.Call {
			return reply{r.Content, r.Error}, true
		}
	}
	return reply{}, false
}

// change wakes who waits for the exchange. rt.mu is held.
func (e *exchange) change() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// addPiece appends to the stream. rt.mu is held.
func (e *exchange) addPiece(p gateway.Piece) {
	p.N = e.chunks
	if p.Kind == gateway.Chunk {
		e.chunks++
	}
	e.pieces = append(e.pieces, p)
	e.rt.logPiece(e, p)
	e.change()
}

// end stores the answer, unless the exchange was cancelled before.
func (e *exchange) end(a gateway.Answer) {
	e.rt.mu.Lock()
	defer e.rt.mu.Unlock()
	if e.answer != nil {
		return
	}
	a.Outcome = cmp.Or(a.Outcome, gateway.Done)
	if a.From == "" && a.Outcome == gateway.Done {
		a.From = e.x.Agent
	}
	e.setAnswer(a)
}

// setAnswer stores the answer and ends the stream. rt.mu is held.
func (e *exchange) setAnswer(a gateway.Answer) {
	a.At, a.Cursor = time.Now(), int64(len(e.pieces)+1)
	e.answer, e.questions, e.x.Answered = &a, nil, a.Cursor
	e.addPiece(gateway.Piece{Kind: gateway.End, Answer: &a})
}

// now returns the answer or the open questions. rt.mu is held.
func (e *exchange) now() (gateway.Answer, bool) {
	if e.answer != nil {
		return *e.answer, true
	}
	if len(e.questions) == 0 {
		return gateway.Answer{}, false
	}
	a := gateway.Answer{Outcome: gateway.NeedsInput}
	for _, q := range e.questions {
		a.Questions = append(a.Questions, q.Question)
	}
	return a, true
}

// find returns a stored exchange. rt.mu is held.
func (rt *Runtime) find(x gateway.Exchange) (*exchange, error) {
	i := slices.IndexFunc(rt.order, func(e *exchange) bool { return e.x.ID == x.ID && e.x.Task == x.Task })
	if i < 0 {
		return nil, fmt.Errorf("no such exchange: %w", gateway.ErrUnknown)
	}
	return rt.order[i], nil
}

// Find is gateway.Runtime's.
func (rt *Runtime) Find(_ context.Context, c gateway.Caller, id string) (gateway.Exchange, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	e, ok := rt.exchanges[keyOf(c, id)]
	if !ok {
		return gateway.Exchange{}, fmt.Errorf("no such exchange: %w", gateway.ErrUnknown)
	}
	x := e.x
	x.Duplicate, x.Note = true, e.note
	return x, rt.failure("Find")
}

// Asked is gateway.Runtime's.
func (rt *Runtime) Asked(ctx context.Context, c gateway.Caller, response swarm.Delivery) (gateway.Exchange, error) {
	return rt.Find(ctx, c, cmp.Or(strings.TrimPrefix(response.Answers, swarm.RemoteKey(c.Realm, "")), response.Wrapper.Payload.ID))
}

// List is gateway.Runtime's.
func (rt *Runtime) List(_ context.Context, c gateway.Caller, before string, limit int) (list []gateway.Exchange, err error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	skip := before != ""
	for _, e := range slices.Backward(rt.order) {
		if e.key != keyOf(c, e.key.id) {
			continue
		}
		if !skip && len(list) < limit {
			list = append(list, e.x)
		}
		skip = skip && e.x.ID != before
	}
	return list, rt.failure("List")
}

// Look is gateway.Runtime's.
func (rt *Runtime) Look(_ context.Context, x gateway.Exchange) (gateway.Answer, bool, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	e, err := rt.find(x)
	if err != nil {
		return gateway.Answer{}, false, err
	}
	a, ok := e.now()
	return a, ok, rt.failure("Look")
}

// Wait is gateway.Runtime's.
func (rt *Runtime) Wait(ctx context.Context, x gateway.Exchange) (gateway.Answer, error) {
	for {
		a, ok, changed, err := rt.look(x)
		if err != nil || ok {
			return a, err
		}
		select {
		case <-changed:
		case <-rt.draining:
			return gateway.Answer{}, fmt.Errorf("the host stops: %w", gateway.ErrDraining)
		case <-ctx.Done():
			return gateway.Answer{}, context.Cause(ctx)
		}
	}
}

func (rt *Runtime) look(x gateway.Exchange) (gateway.Answer, bool, <-chan struct{}, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err := rt.failure("Wait"); err != nil {
		return gateway.Answer{}, false, nil, err
	}
	e, err := rt.find(x)
	if err != nil {
		return gateway.Answer{}, false, nil, err
	}
	a, ok := e.now()
	return a, ok, e.changed, nil
}

// Cancel is gateway.Runtime's.
func (rt *Runtime) Cancel(_ context.Context, c gateway.Caller, id, reason string) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err := rt.failure("Cancel"); err != nil {
		return err
	}
	e, ok := rt.exchanges[keyOf(c, id)]
	if !ok {
		return fmt.Errorf("no such exchange: %w", gateway.ErrUnknown)
	}
	if e.answer != nil {
		return fmt.Errorf("it is answered: %w", gateway.ErrConflict)
	}
	e.setAnswer(gateway.Answer{Outcome: gateway.Cancelled, Body: reason})
	e.cancel()
	return nil
}

// Follow is gateway.Runtime's. Every reader gets all progress and all questions.
func (rt *Runtime) Follow(_ context.Context, x gateway.Exchange, from int64) (gateway.Stream, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err := rt.failure("Follow"); err != nil {
		return nil, err
	}
	e, err := rt.find(x)
	if err != nil {
		return nil, err
	}
	return &stream{e: e, from: from, closed: make(chan struct{})}, nil
}

// FollowWhole is gateway.Runtime's.
func (rt *Runtime) FollowWhole(ctx context.Context, x gateway.Exchange) (gateway.Stream, error) {
	return rt.Follow(ctx, x, 0)
}

// stream reads an exchange's pieces.
type stream struct {
	e      *exchange
	next   int
	from   int64
	closed chan struct{}
}

// Next is gateway.Stream's.
func (s *stream) Next(ctx context.Context) (gateway.Piece, error) {
	for {
		s.e.rt.mu.Lock()
		pieces, changed := s.e.pieces, s.e.changed
		s.e.rt.mu.Unlock()
		for s.next < len(pieces) {
			p := pieces[s.next]
			s.next++
			if p.Kind != gateway.Chunk || p.N >= s.from {
				return p, nil
			}
		}
		if n := len(pieces); n > 0 && pieces[n-1].Kind == gateway.End {
			return gateway.Piece{}, io.EOF
		}
		select {
		case <-changed:
		case <-s.closed:
			return gateway.Piece{}, io.ErrClosedPipe
		case <-ctx.Done():
			return gateway.Piece{}, context.Cause(ctx)
		}
	}
}

// Close is gateway.Stream's.
func (s *stream) Close() error {
	close(s.closed)
	return nil
}

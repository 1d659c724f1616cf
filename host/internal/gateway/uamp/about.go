package uamp

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/lifecycle"
)

// about is what an envelope of a realm has to do with one of ours.
type about struct {
	key state.Key
	// of is the envelope of ours; isOpen means that it waits for its answer.
	of     openEnvelope
	isOpen bool
	// failed and sum are of the answer that it has.
	failed bool
	sum    string
}

// findOwn finds the envelope of ours that one of a realm is about.
func (g *Gateway) findOwn(ctx context.Context, c gateway.Caller, e envelope.Envelope) (m about, ok bool, err error) {
	for _, id := range g.cites(ctx, c, e) {
		if m, ok, err = g.findByID(ctx, c, id); ok || err != nil {
			return m, ok, err
		}
	}
	return m, false, nil
}

// cites are the ids that an envelope of a realm may name one of ours by: reply_to, or else its
// stream where it can be nothing but about that, or else what it cites last.
func (g *Gateway) cites(ctx context.Context, c gateway.Caller, e envelope.Envelope) (list []envelope.ID) {
	if e.ReplyTo != "" {
		return []envelope.ID{e.ReplyTo}
	}
	if id := g.ofStream(ctx, c, e); id != "" {
		list = append(list, id)
	}
	if n := len(e.Context); n > 0 {
		list = append(list, e.Context[n-1].ID)
	}
	return list
}

// ofStream is the envelope of ours whose stream an envelope of a realm names, empty for none. The
// stream_id of a question is the name of a stream of its own, and progress may acknowledge one of
// the realm's.
func (g *Gateway) ofStream(ctx context.Context, c gateway.Caller, e envelope.Envelope) envelope.ID {
	if e.Stream == "" {
		return ""
	}
	switch e.Intent {
	case envelope.Confirm, envelope.Deny, envelope.Error, envelope.Inform:
	case envelope.Progress:
		if _, err := g.findStream(ctx, c, e.Stream); err == nil {
			return ""
		}
	default:
		return ""
	}
	if id := g.waiting.ofStream(c, e.Stream); id != "" {
		return id
	}
	id, _ := strings.CutPrefix(e.Stream, ownStream)
	return envelope.ID(id)
}

// findByID finds an envelope of ours by its id.
func (g *Gateway) findByID(ctx context.Context, c gateway.Caller, id envelope.ID) (m about, ok bool, err error) {
	name, ok := threadName(id)
	if !ok {
		return m, false, nil
	}
	m.key = threadKey(c, name)
	t, version, err := state.Load[thread](ctx, g.threads, m.key)
	if err != nil || version == 0 {
		return m, false, err
	}
	if i := t.find(id); i >= 0 {
		m.of, m.isOpen = t.Open[i], true
		return m, true, nil
	}
	a, ok := t.answered(id)
	m.of = openEnvelope{ID: a.ID, Intent: a.Intent, To: a.To, Sent: a.Sent}
	m.failed, m.sum = a.Failed, a.Sum
	return m, ok, nil
}

// errSubscriptionEnded is returned for an event for which no task waits.
var errSubscriptionEnded error = envelope.Faultf(envelope.IllegalState, "the subscription is over")

// state is the state of our envelope (U-088).
func (m about) state() lifecycle.Exchange {
	x := lifecycle.Exchange{Intent: m.of.Intent, State: lifecycle.InProgress}
	switch {
	case m.isOpen:
	case m.failed:
		x.State = lifecycle.Failed
	default:
		x.State = lifecycle.Completed
	}
	return x
}

// acceptAbout does what an envelope about one of ours wants.
func (g *Gateway) acceptAbout(ctx context.Context, c gateway.Caller, s envelope.Signed, m about) (x received, err error) {
	next, err := m.state().Next(s.Intent, false)
	if err != nil {
		return x, err
	}
	switch s.Intent {
	case envelope.Ask, envelope.Propose, envelope.Subscribe:
		return g.askBack(ctx, c, s, m)
	case envelope.Progress:
		return x, g.showProgress(ctx, s.Envelope, m)
	case envelope.Inform, envelope.Notify:
		if m.isOpen && m.of.Intent == envelope.Subscribe {
			if waits, err := g.checkWaits(ctx, c, m.of); !waits || err != nil {
				return x, cmp.Or(err, errSubscriptionEnded)
			}
		}
		if next == m.state().State {
			x.Exchange, err = g.continueTask(ctx, c, s, m.of, string(s.ID), gateway.Tells)
			return x, err
		}
	}
	return x, g.acceptAnswer(ctx, c, s, m)
}

// acceptAnswer takes the answer to an envelope of ours. It has one: a second one that is
// like it changes nothing (U-089).
func (g *Gateway) acceptAnswer(ctx context.Context, c gateway.Caller, s envelope.Signed, m about) error {
	if !answersFor(s.From, m.of.To) {
		return envelope.Faultf(envelope.Unauthorized, "the sender is not the agent that was asked")
	}
	// The hash is of what the stream has, which is read by who has sent the envelope.
	if sum := gateway.ExtensionText(s.Ext[extAnswer]); sum != "" {
		return g.acceptSum(ctx, m, sum)
	}
	if !m.isOpen {
		return nil
	}
	got := g.answerIn(s)
	if err := g.deliverAnswer(ctx, c, m.of, nil, got); err != nil {
		return err
	}
	if m.of.Intent == envelope.Subscribe {
		if err := g.removeSubscription(ctx, c, m.of.ID); err != nil {
			return err
		}
	}
	if err := g.changeOpen(ctx, m.key, m.of.ID, func(t *thread) { t.answer(m.of.ID, got.failed(), "") }); err != nil {
		return err
	}
	g.waiting.wake(m.of.ID)
	return nil
}

// acceptSum compares the hash of an answer with what the stream has had. One that comes
// before the stream's end is compared then.
func (g *Gateway) acceptSum(ctx context.Context, m about, sum string) error {
	if m.isOpen && m.of.Announced == "" {
		return g.changeOpen(ctx, m.key, m.of.ID, func(t *thread) {
			if o := &t.Open[t.find(m.of.ID)]; o.Announced == "" {
				o.Announced = sum
			}
		})
	}
	if known := cmp.Or(m.of.Announced, m.sum); known != "" && known != sum {
		return envelope.Faultf(envelope.IllegalState, "%s is not of the last delta that the stream had", extAnswer)
	}
	return nil
}

// askBack brings a question of the foreign agent to the task that has written to it. The
// answer comes on a stream, and by an envelope.
func (g *Gateway) askBack(ctx context.Context, c gateway.Caller, s envelope.Signed, m about) (x received, err error) {
	end, err := g.reserveStream(ctx, c, s.Envelope)
	if err != nil {
		return x, err
	}
	defer end()
	if x.Exchange, err = g.continueTask(ctx, c, s, m.of, string(s.ID), gateway.Asks); err != nil {
		return x, err
	}
	x.stream = streamOf(s.Envelope)
	return x, g.keepStream(ctx, c, x.Exchange, s.Envelope)
}

// continueTask brings an envelope to the task that has sent ours, whoever owns it, under an id
// of the runtime.
func (g *Gateway) continueTask(ctx context.Context, c gateway.Caller, s envelope.Signed, of openEnvelope, id string, kind gateway.Kind) (gateway.Exchange, error) {
	release, err := g.large.Acquire(ctx, len(s.Received()))
	if err != nil {
		return gateway.Exchange{}, err
	}
	defer release()
	a, err := g.askOf(s, nil)
	if err != nil {
		return gateway.Exchange{}, err
	}
	a.Kind, a.ID, a.Swarm, a.Of, a.Sent, a.Reply = kind, id, of.Sent.Swarm, of.Sent.Delivery(), true, kind == gateway.Asks
	return g.Runtime.Ask(ctx, c, a)
}

// showProgress shows how far a foreign agent is with an envelope of ours. It is no mail.
func (g *Gateway) showProgress(ctx context.Context, e envelope.Envelope, m about) error {
	content, err := e.Body.Decode(int(g.MaxBody))
	if err != nil {
		return err
	}
	if !m.isOpen || !isText(e.Body.Type) {
		return nil
	}
	err = g.Runtime.Show(ctx, *m.of.Sent.Delivery(), gateway.Piece{Kind: gateway.Progress, Text: string(content)})
	if errors.Is(err, gateway.ErrUnknown) {
		err = nil // our task does not wait any more
	}
	return err
}

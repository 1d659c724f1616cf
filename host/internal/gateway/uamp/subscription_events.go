package uamp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/stream"
)

// Times of reading the streams of subscriptions.
const (
	minFollowPause = time.Second
	maxFollowPause = time.Minute
	// quietRead is the time after which a response that brought nothing has not failed: there
	// were no events.
	quietRead = 10 * time.Second
	// taskCheckInterval is the time between two checks whether the task still waits for events.
	taskCheckInterval = time.Minute
)

// maxEvent bounds the chunk of one event, in bytes.
const maxEvent = 1 << 20

var (
	// errOver ends the reading of a stream at the end of its subscription's time.
	errOver = errors.New("the time of the subscription is over")
	// errTaskCheck ends it for such a check.
	errTaskCheck = errors.New("is the subscription over?")
	// errNoPartner is returned for a subscription whose partner is not configured any more.
	errNoPartner = errors.New("the partner is not configured")
)

// followSubscription tells what a subscription brings until it is over: by an answer of the
// partner or at the end of its time.
func (g *Gateway) followSubscription(ctx context.Context, key state.Key) {
	for pause := minFollowPause; ; pause = min(2*pause, maxFollowPause) {
		sub, version, err := state.Load[subscription](ctx, g.state, key)
		if err == nil && version == 0 {
			return
		}
		next := sub.Next
		if err == nil {
			err = g.followOnce(ctx, key, &sub)
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, errNoSubscription) {
			return
		}
		if errors.Is(err, errTaskCheck) || sub.Next > next {
			pause = minFollowPause
		}
		if errors.Is(err, errTaskCheck) {
			continue
		}
		g.Log.Warn("uamp: a subscription is not read", "realm", key.Realm, "id", key.Name, "pause", pause, "error", err)
		wait := max(pause, min(outcomeOf(err).Wait, maxFollowPause)) // a task that ends meanwhile is noticed
		if sub.isLive() {
			wait = min(wait, time.Until(sub.Until))
		}
		if !gateway.Pause(ctx, wait) {
			return
		}
	}
}

// followOnce reads the events of a subscription, and answers its request when it is over.
func (g *Gateway) followOnce(ctx context.Context, key state.Key, sub *subscription) error {
	p, ok := g.Runtime.Partner(key.Realm)
	if !ok && sub.isLive() {
		return errNoPartner
	}
	if ok {
		if err := g.checkEnd(ctx, p, *sub); err != nil {
			return err
		}
	}
	until, why := sub.Until, errOver
	if check := time.Now().Add(taskCheckInterval); check.Before(until) || !sub.Taken {
		until, why = check, errTaskCheck
	}
	timed, cancel := context.WithDeadlineCause(ctx, until, why)
	defer cancel()
	got, err := g.awaitEnd(timed, p, key, sub)
	switch {
	case err == nil: // the partner has ended it
		return g.endSubscription(ctx, ownerOf(key, p), *sub, got)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(context.Cause(timed), errTaskCheck):
		return errTaskCheck
	case errors.Is(context.Cause(timed), errOver):
		got = answer{kind: string(envelope.Subscribe), from: sub.To, subject: "Subscription over", body: "The time of the subscription to " + strconv.Quote(sub.Topic) + " is over."}
	case isFinalFault(err) && !errors.Is(err, errStreamDenied) && !errors.Is(err, errNoSubscription):
		got = answer{kind: string(envelope.Error), from: sub.To, code: string(codeIn(err)), body: "The subscription is over: " + err.Error()}
	default:
		return err
	}
	if !ok {
		return g.endSubscription(ctx, ownerOf(key, p), *sub, got)
	}
	if err := g.deliverAnswer(context.WithoutCancel(ctx), ownerOf(key, p), sub.open(), sub.Sent.Delivery(), got); err != nil {
		return err
	}
	return g.leaveSubscription(ctx, p, *sub, got.failed())
}

// awaitEnd returns how the partner ends a subscription, and the cause of ctx if that comes
// first.
func (g *Gateway) awaitEnd(ctx context.Context, p gateway.Partner, key state.Key, sub *subscription) (answer, error) {
	if ctx.Err() == nil && sub.Stream != "" {
		return g.readEvents(ctx, p, key, sub)
	}
	<-ctx.Done()
	return answer{}, context.Cause(ctx)
}

// codeIn is the code of the document in an error.
func codeIn(err error) envelope.Code {
	var f *envelope.Fault
	if errors.As(err, &f) {
		return f.Code
	}
	return envelope.Internal
}

// ownerOf is who speaks for the realm of a record.
func ownerOf(key state.Key, p gateway.Partner) gateway.Caller {
	p.Name, p.Tenant = key.Realm, key.Tenant
	return p.Caller()
}

// readEvents reads the stream of a subscription, each delta once.
func (g *Gateway) readEvents(ctx context.Context, p gateway.Partner, key state.Key, sub *subscription) (answer, error) {
	a, err := g.attemptOf(ctx, p, *sub)
	if err != nil {
		return answer{}, err
	}
	defer a.via.close()
	at, err := a.via.streamAt(sub.Stream)
	if err != nil {
		return answer{}, err
	}
	r := &streamReader{attempt: a, assembly: stream.NewFeed(a.e.Window, maxEvent, sub.Next), patches: stream.NewPatches(maxPatches)}
	r.event = func(ctx context.Context, n int, piece stream.Piece) error {
		return g.tellDelta(ctx, p, key, sub, n, piece)
	}
	for {
		before, begun := r.assembly.Next(), time.Now()
		err := a.via.read(ctx, r, at)
		failed := err != nil && r.assembly.Next() == before && time.Since(begun) < quietRead
		switch {
		case r.last != nil:
			return r.answer()
		case r.reply != nil:
			return g.answerIn(*r.reply), nil
		case ctx.Err() != nil:
			return answer{}, context.Cause(ctx)
		case failed || isFinalFault(err) || errors.Is(err, errNoSubscription):
			return answer{}, err
		}
		if !gateway.Pause(ctx, r.pauseAfter(before, begun, err)) {
			return answer{}, context.Cause(ctx)
		}
	}
}

// tellDelta tells the event of a delta to the task that has subscribed, and keeps that it was
// told. It waits while the store fails or the partner is above its rate.
func (g *Gateway) tellDelta(ctx context.Context, p gateway.Partner, key state.Key, sub *subscription, n int, piece stream.Piece) error {
	a := g.eventOf(*sub, strconv.Itoa(n))
	a.Info["delta_seq"] = n
	a.Digest = sha256.Sum256(piece.Payload)
	var known struct{ Text *string }
	switch {
	case piece.Type == envelope.DeltaPatch:
		a.Body = string(piece.Payload)
	case json.Unmarshal(piece.Payload, &known) == nil && known.Text != nil:
		a.Body = *known.Text
	case len(piece.Data) > 0:
		a.Parts = []gateway.Part{{Name: "event", Type: "application/octet-stream", Data: piece.Data}}
	default:
		a.Body = string(piece.Payload)
	}
	limitBody(&a, "event.txt")
	for {
		err := g.tellEvent(ctx, p, *sub, a)
		if err == nil {
			err = g.changeSubscription(ctx, key, func(s *subscription) { s.Next = n + 1 })
		}
		if err == nil {
			sub.Next = n + 1
			return nil
		}
		if errors.Is(err, errNoSubscription) || errors.As(err, new(*gateway.Refusal)) || !gateway.Pause(ctx, waitAfter(err)) {
			return err
		}
	}
}

// waitAfter is the time before an event is told again.
func waitAfter(err error) time.Duration {
	var rate *gateway.RateError
	if errors.As(err, &rate) {
		return max(lookPause, rate.Wait)
	}
	return lookPause
}

// eventID is the runtime's id of an event that has no envelope of its own, or not alone.
func (s subscription) eventID(name string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(s.ID.String()+"#"+name)).String()
}

// eventOf is an event without its content.
func (g *Gateway) eventOf(sub subscription, name string) gateway.Ask {
	return gateway.Ask{
		Kind: gateway.Tells, ID: sub.eventID(name), Swarm: sub.Sent.Swarm, Of: sub.Sent.Delivery(), Sent: true, Subject: strings.TrimLeft(sub.Topic, ":"),
		Info: map[string]any{
			"protocol": Name, "version": "1.0", "type": string(envelope.Notify), "sender": sub.To, "reply_to": sub.ID.String(), "topic": sub.Topic,
		},
	}
}

// checkEnd returns [errNoSubscription] for a subscription whose task waits for no event any
// more, after it was withdrawn.
func (g *Gateway) checkEnd(ctx context.Context, p gateway.Partner, sub subscription) error {
	waits, err := g.Runtime.Waits(ctx, *sub.Sent.Delivery())
	if waits || err != nil {
		return err
	}
	return g.leaveSubscription(ctx, p, sub, true)
}

// leaveSubscription withdraws a subscription whose request is closed, removes its record and
// returns [errNoSubscription]. While its partner cannot be told it stays, until its time.
func (g *Gateway) leaveSubscription(ctx context.Context, p gateway.Partner, sub subscription, failed bool) error {
	ctx = context.WithoutCancel(ctx) // the end of the record ends who has read it
	if err := g.withdrawSubscription(ctx, p, sub); err != nil && sub.isLive() {
		return fmt.Errorf("withdraw a subscription whose task has ended: %w", err)
	}
	if err := g.closeSubscription(ctx, p.Caller(), sub.ID, failed, ""); err != nil {
		return err
	}
	return errNoSubscription
}

// tellEvent tells an event to the task that has subscribed.
func (g *Gateway) tellEvent(ctx context.Context, p gateway.Partner, sub subscription, a gateway.Ask) error {
	if err := g.checkEnd(ctx, p, sub); err != nil {
		return err
	}
	_, err := g.Runtime.Ask(ctx, p.Caller(), a)
	switch {
	case errors.Is(err, gateway.ErrConflict):
		return nil // it was told
	case errors.Is(err, gateway.ErrUnknown): // the task has ended since the check, or was erased
		return cmp.Or(g.checkEnd(ctx, p, sub), errNoSubscription)
	case errors.Is(err, gateway.ErrDenied), errors.Is(err, gateway.ErrInvalid):
		return gateway.Refuse("an event cannot be told: %v", err)
	}
	return err
}

// tellNotify tells an event that comes by an envelope which cites none of ours: to each
// subscription of its recipients at its sender, or to the one of its stream. found is false
// where there is none.
func (g *Gateway) tellNotify(ctx context.Context, c gateway.Caller, s envelope.Signed) (x received, found bool, err error) {
	var list []subscription
	err = g.eachSubscription(ctx, c, func(sub subscription) {
		if sub.isLive() && sub.To == s.From && (s.Stream == "" || sub.hasStream(s.Stream)) && slices.Contains(s.Recipients(), sub.From) {
			list = append(list, sub)
		}
	})
	if err == nil && len(list) == 0 {
		return x, false, g.checkEvent(ctx, c, s.ID)
	}
	if err == nil {
		err = g.keepEvent(ctx, c, s.ID)
	}
	told := 0
	for _, sub := range list {
		waits := false
		if err == nil {
			waits, err = g.checkWaits(ctx, c, sub.open())
		}
		if err != nil || !waits {
			continue
		}
		told++
		// The runtime has each id once, and subscriptions may end before a repeat of the event.
		x.Exchange, err = g.continueTask(ctx, c, s, sub.open(), sub.eventID(string(s.ID)), gateway.Tells)
	}
	if err == nil && told == 0 && len(list) > 0 {
		err = errSubscriptionEnded
	}
	return x, len(list) > 0, err
}

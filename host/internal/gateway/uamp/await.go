package uamp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/envelope"
)

// Times of attempts.
const (
	// lastLook is the least time of an attempt that is made again.
	lastLook = 10 * time.Second
	// withdrawTime bounds the cancel of an envelope whose time is over.
	withdrawTime = 5 * time.Second
	// lookPause is the time after which an answer or event is told again that was not taken.
	lookPause = time.Second
	// fewPause is the time after a request that brought few deltas.
	fewPause = 50 * time.Millisecond
	// goneTime is how long a partner that takes an envelope may show no stream for it.
	goneTime = 10 * time.Second
)

// errNoAnswer ends the wait for an answer.
var errNoAnswer = errors.New("no answer in time")

// ask sends an envelope and waits for its answer, within the partner's time. An attempt
// that is made again has the rest of that time, and none if the answer has come meanwhile.
func (a *attempt) ask(ctx context.Context) error {
	answered, end := a.g.waiting.begin(a.e.ID)
	defer end()
	t, _, err := state.Load[thread](ctx, a.g.threads, a.thread)
	if _, done := t.answered(a.e.ID); done || err != nil {
		return err
	}
	first, err := a.begin(ctx)
	if err != nil {
		return err
	}
	limit := a.open.Since.Add(a.p.Timeout)
	if last := time.Now().Add(lastLook); !first && last.After(limit) {
		limit = last // the host was down meanwhile
	}
	timed, cancel := context.WithDeadlineCause(ctx, limit, errNoAnswer)
	defer cancel()
	if err = a.await(timed, first, answered); err == nil {
		return nil
	}
	if ctx.Err() == nil && !a.answered && errors.Is(context.Cause(timed), errNoAnswer) {
		err = a.giveUp(ctx)
	}
	if a.isAnswered(ctx) { // meanwhile, by an envelope of its own
		return nil
	}
	return a.settle(ctx, first, err)
}

// isAnswered reports whether the envelope has its answer.
func (a *attempt) isAnswered(ctx context.Context) bool {
	t, _, err := state.Load[thread](context.WithoutCancel(ctx), a.g.threads, a.thread)
	_, done := t.answered(a.e.ID)
	return done && err == nil
}

// giveUp refuses an envelope that has no answer in time, and withdraws it at the partner, later where
// the partner cannot be reached now.
func (a *attempt) giveUp(ctx context.Context) error {
	if a.tried {
		late, cancel := context.WithTimeout(ctx, withdrawTime)
		defer cancel()
		w := *a
		w.e.ID = envelope.NewID()
		if err := w.withdraw(late, a.e.ID); !isWithdrawn(err) {
			err = a.g.keepWithdrawal(context.WithoutCancel(ctx), a.caller, withdrawal{a.e.ID, a.e.From, a.e.To[0], gateway.RefOf(a.d)})
			if err != nil {
				a.g.Log.Warn("uamp: an envelope that was given up is not withdrawn", "realm", a.p.Name, "id", a.e.ID, "error", err)
			}
		}
	}
	return a.p.NoAnswer(Name, a.trouble)
}

// await sends an envelope, unless the stream with its answer is known, and waits until the
// answer was delivered.
func (a *attempt) await(ctx context.Context, first bool, answered <-chan struct{}) error {
	ctx, cancel := gateway.EndWhen(ctx, answered) // an answer by an envelope of its own ends the request, too
	defer cancel()
	err := a.exchange(ctx, first)
	if err == nil {
		return nil
	}
	select {
	case <-answered:
		return nil
	default:
	}
	if ctx.Err() != nil && !a.answered {
		return context.Cause(ctx)
	}
	return err
}

// exchange sends the envelope and delivers what answers it.
func (a *attempt) exchange(ctx context.Context, first bool) error {
	at := a.resolve(a.open.Stream)
	a.sent = at != ""
	isNew := !a.sent
	if !a.sent {
		got, err := a.send(ctx, first)
		if err != nil {
			return err
		}
		if got.answer != nil {
			return a.deliver(ctx, first, a.g.answerIn(*got.answer))
		}
		if at = got.stream; at != "" {
			if err := a.keepStream(ctx, at); err != nil { // another attempt learns it again
				a.g.Log.Error("uamp: the address of a stream is not kept", "error", err)
			}
		}
	}
	if at == "" {
		return a.awaitUnnamed(ctx, first)
	}
	got, err := a.readStream(ctx, at)
	if errors.Is(err, errStreamGone) {
		return a.streamGone(ctx, at, isNew)
	}
	if err != nil {
		return err
	}
	return a.deliverStream(ctx, first, got)
}

// streamGone has the envelope sent again, for another stream. A partner may have told of a new one
// before it can show it; one that does so for [goneTime] shows none.
func (a *attempt) streamGone(ctx context.Context, at string, isNew bool) error {
	since := time.Now()
	if isNew && !a.begun && a.open.Gone != "" {
		since = a.open.GoneSince
	}
	if time.Since(since) >= goneTime {
		return gateway.Refuse("the partner takes the envelope, and has had no stream for it for %s, at last at %.200q", goneTime, at)
	}
	err := a.g.changeOpen(ctx, a.thread, a.e.ID, func(t *thread) {
		of := &t.Open[t.find(a.e.ID)]
		of.Stream, of.Gone, of.GoneSince = "", at, since
	})
	return errors.Join(errStreamGone, err)
}

// readStream reads the stream with the answer. An envelope may name it meanwhile.
func (a *attempt) readStream(ctx context.Context, at string) (answer, error) {
	a.named = streamNameIn(at)
	a.g.waiting.nameStream(a.e.ID, a.caller, a.named)
	return a.follow(ctx, at)
}

// awaitUnnamed waits for an answer about whose stream the response has told nothing: the response
// before has, or the envelope has named it (C.2). Where there is none under this name the answer is to
// come by an envelope of its own. A stream that was told is looked for again.
func (a *attempt) awaitUnnamed(ctx context.Context, first bool) error {
	told := a.resolve(a.open.Gone)
	at := cmp.Or(told, a.via.streamNamed(a.e.Stream))
	for pace := (gateway.Pace{}); ; {
		begun := time.Now()
		got, err := a.readStream(ctx, at)
		if err == nil {
			return a.deliverStream(ctx, first, got)
		}
		if errors.As(err, new(*envelope.Fault)) {
			return err
		}
		if a.trouble == nil {
			a.trouble = fmt.Errorf("it has told no Location, and of the stream %s: %w", streamNameIn(at), err)
		}
		if told == "" || !errors.Is(err, errStreamGone) {
			<-ctx.Done()
		}
		if ctx.Err() != nil || !gateway.Pause(ctx, pace.Pause(begun, 0)) {
			return context.Cause(ctx)
		}
	}
}

// deliverStream brings what a stream has to the agent that asked.
func (a *attempt) deliverStream(ctx context.Context, first bool, got answer) error {
	if err := a.checkSum(ctx, got); err != nil {
		return err
	}
	return a.deliver(ctx, first, got)
}

// checkSum holds what a stream has brought against a confirm that came before its end: deltas
// bear no signature (D-U21).
func (a *attempt) checkSum(ctx context.Context, got answer) error {
	t, _, err := state.Load[thread](ctx, a.g.threads, a.thread)
	if err != nil {
		return err
	}
	if i := t.find(a.e.ID); i >= 0 && t.Open[i].Announced != "" && t.Open[i].Announced != got.sum {
		return gateway.Refuse("the stream's last delta is not the one whose hash %s has signed", a.e.To[0])
	}
	return nil
}

// resolve is a kept address of a stream as the partner's binding has it, empty for none. One that the
// binding does not have does not count: the partner has moved.
func (a *attempt) resolve(kept string) string {
	if kept == "" {
		return ""
	}
	at, err := a.via.streamAt(kept)
	if err != nil {
		return ""
	}
	return at
}

// keepStream remembers where the answer is.
func (a *attempt) keepStream(ctx context.Context, at string) error {
	return a.g.changeOpen(ctx, a.thread, a.e.ID, func(t *thread) { t.Open[t.find(a.e.ID)].Stream = at })
}

// deliver brings the answer to the agent that asked. Until the partner's time is over it is
// tried again: what came is not asked for twice as the store fails for a moment.
func (a *attempt) deliver(ctx context.Context, first bool, got answer) error {
	a.answered, a.open.Sent = true, gateway.RefOf(a.d)
	for {
		err := a.g.deliverAnswer(context.WithoutCancel(ctx), a.caller, a.open, &a.d, got)
		if err == nil {
			break
		}
		if outcomeOf(err).State == gateway.Refused || !gateway.Pause(ctx, lookPause) {
			return err
		}
	}
	a.remember(ctx, func(t *thread) {
		t.answer(a.e.ID, got.failed(), got.sum)
		if a.open.Stream == "" {
			t.Last = a.last(first)
		}
	})
	return nil
}

// remember changes the thread after what it tells of is done, which an error does not undo:
// an attempt after it finds the envelope under way, and repeats it as it was.
func (a *attempt) remember(ctx context.Context, change func(*thread)) {
	err := a.g.changeOpen(context.WithoutCancel(ctx), a.thread, a.e.ID, change)
	if err != nil {
		a.g.Log.Error("uamp: what became of an envelope is not kept", "id", a.e.ID, "error", err)
	}
}

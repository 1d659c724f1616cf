package acp

import (
	"context"
	"errors"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/message"
)

const (
	// lastLook is the least time of an attempt that is made again.
	lastLook = 10 * time.Second
	// fullPause is the time after which the runtime is given an answer again that it had no room for.
	fullPause = time.Second
)

var (
	// errNoAnswer ends the wait for an answer.
	errNoAnswer = errors.New("no answer in time")
	// errConnectionLost means that the partner may have the question.
	errConnectionLost = errors.New("the connection was lost before the answer")
)

// ask sends a question and waits for its answer, within the partner's time. An attempt
// that is made again has the rest of that time, and none if the answer has come meanwhile.
func (a *attempt) ask(ctx context.Context) error {
	answered, end := a.g.waiting.begin(a.thread, a.d.Wrapper.MessageID)
	defer end()
	var q openQuestion
	first := false
	err := a.g.changeThread(ctx, a.thread, func(t *thread) error {
		q, first = openQuestion{}, t.find(a.d.Wrapper.MessageID) < 0
		t.Theirs = a.theirs
		err := t.open(a.d.Wrapper.MessageID, gateway.RefOf(a.d))
		if i := t.find(a.d.Wrapper.MessageID); i >= 0 {
			q = t.Open[i]
		}
		return err
	})
	if err != nil || q.ID == "" {
		return err
	}
	limit := q.Since.Add(a.p.Timeout)
	if last := time.Now().Add(lastLook); !first && last.After(limit) {
		limit = last // the host was down meanwhile
	}
	timed, cancel := context.WithDeadlineCause(ctx, limit, errNoAnswer)
	defer cancel()
	if err = a.await(timed, q, answered); ctx.Err() == nil && errors.Is(context.Cause(timed), errNoAnswer) && err != nil {
		err = a.p.NoAnswer(Name, a.trouble)
	}
	unsent := first && a.outcomeOf(err).State == gateway.Later // its time has not begun
	if unsent || carriedForGood(err) {
		return errors.Join(err, a.g.changeThread(ctx, a.thread, func(t *thread) error {
			t.close(q.ID, "")
			return nil
		}))
	}
	return err
}

// carriedForGood reports whether a question is not sent again, and has no answer.
func carriedForGood(err error) bool {
	return err != nil && gateway.CarriedAfter(err).State == gateway.Refused
}

// await sends a question and waits until its answer was delivered.
func (a *attempt) await(ctx context.Context, q openQuestion, answered <-chan struct{}) error {
	ctx, cancel := gateway.EndWhen(ctx, answered) // an answer by a message of its own ends the request, too
	defer cancel()
	got, err := a.send(ctx, a.p.Timeout)
	if err == nil {
		got, err = a.poll(ctx, got)
	}
	if err == nil && got.message != nil && a.isAnswer(*got.message) {
		about := match{of: &q.Sent, d: &a.d, key: a.thread, answers: q.ID}
		for {
			_, err := a.g.answer(context.WithoutCancel(ctx), a.caller, *got.message, about, true)
			if !errors.Is(err, gateway.ErrBusy) || !gateway.Pause(ctx, fullPause) {
				return err
			}
		}
	}
	if err == nil {
		select {
		case <-answered:
		case <-got.lost: // a program or broker that has died may have lost it
			err = errConnectionLost
		case <-ctx.Done():
		}
	}
	select {
	case <-answered:
		return nil
	default:
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// show brings progress to the readers of the task, once while a Location has it, and reports whether
// it is new. Progress that cannot be shown changes nothing.
func (a *attempt) show(ctx context.Context, got reply) bool {
	if got.message == nil || !isPartial(got.message.Header) || got.message.Header.ID == a.shown {
		return false
	}
	a.shown = got.message.Header.ID
	_, _ = a.g.accept(ctx, a.caller, *got.message, false)
	return true
}

// isAnswer reports whether a reply to our request is the answer to its message.
func (a *attempt) isAnswer(in incoming) bool {
	if isPartial(in.Header) {
		return false
	}
	switch in.Header.Type {
	case message.MessageTypeResponse, message.MessageTypeInform, message.MessageTypeError:
		return in.Header.ReplyTo == nil || *in.Header.ReplyTo == a.m.Header.ID
	}
	return false
}

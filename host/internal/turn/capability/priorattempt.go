package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
)

// priorAttempt is the record of an earlier attempt that this one has not reached yet.
type priorAttempt struct {
	entries []swarm.Entry
	pos     int
	// answers are the consumed answers, by the path of their call.
	answers map[string]*swarm.Entry
	// effects is what the record contains about effects, by path.
	effects map[string]effectRecord
	// offline is set if there is only the record and nothing goes on after it. atEnd is
	// set once the turn has reached its end.
	offline, atEnd bool
	// options select the calls to report; stoppedAt is the call that the replay stopped
	// at.
	options   ReplayOptions
	stoppedAt *ReplayedCall
}

// effectRecord is the record of an effect whose request may have been sent.
type effectRecord struct {
	answered, closed bool
	// ran is the end of an action, nil for another effect.
	ran  *actionRecord
	read bool // as a stream
}

// loadPrior makes the journal answer from an earlier attempt.
func (j *journal) loadPrior(p *swarm.PriorAttempt) {
	j.attempt, j.header = 2, nil
	j.prior.answers, j.prior.effects = map[string]*swarm.Entry{}, map[string]effectRecord{}
	for _, e := range p.Entries {
		j.last = e.N
		switch e.Kind {
		case swarm.EntryRun:
			j.attempt++
			continue
		case swarm.EntryAnswer:
			j.updateEffect(e.Call, func(o *effectRecord) { o.answered, o.ran = true, actionEnd(e) })
		case swarm.EntryCancel:
			j.updateEffect(e.Call, func(o *effectRecord) { o.closed = true })
		case swarm.EntryRead:
			j.updateEffect(e.Call, func(o *effectRecord) { o.read = o.read || e.Len > 0 })
		}
		j.countCall(e)
		j.prior.entries = append(j.prior.entries, e)
		j.bytes += entryOverhead + int64(len(e.Answer)+len(e.Ran))
	}
}

// addAnswers adds answers that an earlier attempt waited for. They are not durable.
func (j *journal) addAnswers(entries []swarm.Entry) {
	for _, e := range entries {
		if j.prior.effects[e.Call].answered {
			continue
		}
		j.append(e)
		j.prior.entries = append(j.prior.entries, e)
		j.updateEffect(e.Call, func(o *effectRecord) { o.answered = true })
	}
}

// actionEnd decodes the end of an action from the entry of its answer.
func actionEnd(e swarm.Entry) *actionRecord {
	var r actionRecord
	if json.Unmarshal(e.Ran, &r) != nil {
		return nil
	}
	return &r
}

func (j *journal) updateEffect(path string, set func(*effectRecord)) {
	o := j.prior.effects[path]
	set(&o)
	j.prior.effects[path] = o
}

// replaying reports whether recorded entries are left.
func (j *journal) replaying() bool { return j.prior.pos < len(j.prior.entries) }

// nextEntry returns the next recorded entry that is not an answer, or nil. Answers before
// it are consumed.
func (j *journal) nextEntry() *swarm.Entry {
	for j.replaying() {
		e := &j.prior.entries[j.prior.pos]
		if e.Kind != swarm.EntryAnswer {
			return e
		}
		j.consume(e)
	}
	return nil
}

func (j *journal) consume(e *swarm.Entry) {
	j.prior.pos++
	j.clock.Advance(e.Time)
	j.shapes.observe(e, true)
	if e.Kind == swarm.EntryAnswer {
		j.prior.answers[e.Call] = e
	}
}

// recordedAnswer returns the recorded answer to a call. It consumes no later entry,
// because the clock must not run ahead.
func (j *journal) recordedAnswer(path string) (*swarm.Entry, bool) {
	for j.prior.answers[path] == nil && j.replaying() {
		e := &j.prior.entries[j.prior.pos]
		if e.Kind != swarm.EntryAnswer {
			break
		}
		j.consume(e)
	}
	e, ok := j.prior.answers[path]
	return e, ok
}

// replayEntry returns the recorded entry of a call, or nil for a new one. A turn that does
// something else has diverged.
func (j *journal) replayEntry(c call, kinds ...swarm.EntryKind) (*swarm.Entry, *abi.Error) {
	e := j.nextEntry()
	switch {
	case e == nil && !j.prior.offline:
		j.endRepeat()
		return nil, nil
	case e == nil:
		return nil, j.recordEnded(c)
	}
	for _, k := range kinds {
		if e.Kind == k && e.Call == c.path && e.Op == c.op && bytes.Equal(e.Digest, c.digest) {
			j.consume(e)
			return e, nil
		}
	}
	return nil, j.diverge(c, kinds[0], e)
}

// diverge stops a turn that differs from its record.
func (j *journal) diverge(c call, kind swarm.EntryKind, e *swarm.Entry) *abi.Error {
	return j.diverged(c.op, "the turn did not repeat itself at entry %d: now %s, recorded %s", e.N,
		describe(kind, c.path, c.op, c.digest), describe(e.Kind, e.Call, e.Op, e.Digest))
}

func (j *journal) diverged(op abi.Op, format string, args ...any) *abi.Error {
	j.fail("diverged", "", fmt.Sprintf(format, args...))
	return j.stoppedError(op)
}

// recordEnded stops an offline replay at the end of its record.
func (j *journal) recordEnded(c call) *abi.Error {
	j.prior.atEnd = true
	return j.diverged(c.op, "the turn goes on where its record ends: now %s", describe(swarm.EntryCall, c.path, c.op, c.digest))
}

// describe identifies a call or entry in messages.
func describe(kind swarm.EntryKind, path string, op abi.Op, digest []byte) string {
	switch kind {
	case swarm.EntryWait:
		return fmt.Sprintf("a wait for %s (digest %.8x)", path, digest)
	case swarm.EntryRead:
		return "a read from call " + path
	case swarm.EntryCancel:
		return "the close of call " + path
	}
	return fmt.Sprintf("call %s %s (digest %.8x)", path, op, digest)
}

// repeatCall answers a call from its entry, and stages its effect again.
func (o *ops) repeatCall(ctx context.Context, e *swarm.Entry, req []byte) ([]byte, *abi.Error) {
	h := o.table[e.Op]
	if m := recordedMail(e); m != nil {
		h = handler{restaged: true, direct: func(o *ops, _ context.Context, req []byte) ([]byte, *abi.Error) {
			ask, _ := readToolCall(call{op: e.Op}, req) // it is recorded, so it is valid
			return o.sendGatewayMail(ask, *m)
		}}
	}
	if !h.restaged || h.direct == nil || e.Index == indexRefused || o.j.prior.offline {
		return e.Answer, e.Err
	}
	o.j.writer.SetReplay(e)
	_, fault := h.direct(o, context.WithoutCancel(ctx), req)
	o.j.writer.SetReplay(nil)
	if (fault == nil) != (e.Err == nil) {
		return nil, o.j.diverged(e.Op, "call %s %s cannot be repeated: it was answered %s, and now %s", e.Call, e.Op, ending(e.Err), ending(fault))
	}
	return e.Answer, e.Err
}

func ending(fault *abi.Error) string {
	if fault == nil {
		return "ok"
	}
	return fault.Error()
}

// skipNested consumes the entries of an action with a known answer, and calls each for
// every entry.
func (j *journal) skipNested(path string, each func(e *swarm.Entry)) {
	for j.replaying() {
		e := &j.prior.entries[j.prior.pos]
		inside := strings.HasPrefix(e.Call, path+".") || e.Call == pathSleep
		if e.Call == path && e.Kind == swarm.EntryAnswer || !inside && e.Kind != swarm.EntryAnswer {
			return
		}
		j.consume(e)
		each(e)
	}
}

// sleep is the guest's sleep. It does not wait before the last recorded entry, and an
// interrupted sleep is interrupted again.
func (j *journal) sleep(ctx context.Context, d time.Duration) error {
	if j.replaying() {
		e := &j.prior.entries[j.prior.pos]
		if e.Kind == swarm.EntryWait && e.Call == pathSleep {
			j.consume(e)
			return context.Cause(ctx)
		}
	}
	if j.replaying() || j.prior.offline || j.isRepeating() {
		j.clock.Advance(j.clock.Now().Add(max(0, d)))
		return nil
	}
	err := j.clock.Sleep(ctx, d)
	if err != nil {
		j.add(swarm.Entry{Kind: swarm.EntryWait, Call: pathSleep})
	}
	return err
}

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

// past is what an earlier attempt recorded and this one has not come to yet.
type past struct {
	entries []swarm.Entry
	pos     int
	// answers are those that were passed, by the path of their call.
	answers map[string]*swarm.Entry
	// outcomes tell what is known of the effects, by their path.
	outcomes map[string]outcome
	// offline says that the record is all there is: nothing goes on behind it.
	// over says that the turn has come to its end.
	offline, over bool
	// look says which calls are of interest, and seen is the one it stops at.
	look Look
	seen *Seen
}

// outcome is what a record says of an effect whose request may have left.
type outcome struct {
	answered, closed bool
	// ran is how an action has ended, nil for another effect.
	ran  *ran
	read bool // as a stream
}

// recall makes a journal answer from what an earlier attempt recorded.
func (j *journal) recall(p *swarm.Past) {
	j.attempt, j.header = 2, nil
	j.past.answers, j.past.outcomes = map[string]*swarm.Entry{}, map[string]outcome{}
	for _, e := range p.Entries {
		j.last = e.N
		switch e.Kind {
		case swarm.EntryRun:
			j.attempt++
			continue
		case swarm.EntryAnswer:
			j.note(e.Call, func(o *outcome) { o.answered, o.ran = true, ended(e) })
		case swarm.EntryCancel:
			j.note(e.Call, func(o *outcome) { o.closed = true })
		case swarm.EntryRead:
			j.note(e.Call, func(o *outcome) { o.read = o.read || e.Len > 0 })
		}
		j.count(e)
		j.past.entries = append(j.past.entries, e)
		j.bytes += overhead + int64(len(e.Answer)+len(e.Ran))
	}
}

// give adds answers that an earlier attempt waited for. They are not durable.
func (j *journal) give(entries []swarm.Entry) {
	for _, e := range entries {
		if j.past.outcomes[e.Call].answered {
			continue
		}
		j.append(e)
		j.past.entries = append(j.past.entries, e)
		j.note(e.Call, func(o *outcome) { o.answered = true })
	}
}

// ended is how an action has ended whose answer an entry is.
func ended(e swarm.Entry) *ran {
	var r ran
	if json.Unmarshal(e.Ran, &r) != nil {
		return nil
	}
	return &r
}

func (j *journal) note(path string, set func(*outcome)) {
	o := j.past.outcomes[path]
	set(&o)
	j.past.outcomes[path] = o
}

// behind reports whether there is a record that the turn has not come to the
// end of.
func (j *journal) behind() bool { return j.past.pos < len(j.past.entries) }

// next is the next recorded entry that a call can be; nil when there is none.
// Answers on the way are kept for whoever asks.
func (j *journal) next() *swarm.Entry {
	for j.behind() {
		e := &j.past.entries[j.past.pos]
		if e.Kind != swarm.EntryAnswer {
			return e
		}
		j.pass(e)
	}
	return nil
}

func (j *journal) pass(e *swarm.Entry) {
	j.past.pos++
	j.clock.Advance(e.Time)
	if e.Kind == swarm.EntryAnswer {
		j.past.answers[e.Call] = e
	}
}

// answer is what is recorded as the answer to a call. Of what is recorded behind
// it the clock must not know yet.
func (j *journal) answer(path string) (*swarm.Entry, bool) {
	for j.past.answers[path] == nil && j.behind() {
		e := &j.past.entries[j.past.pos]
		if e.Kind != swarm.EntryAnswer {
			break
		}
		j.pass(e)
	}
	e, ok := j.past.answers[path]
	return e, ok
}

// again finds what is recorded of something the turn does; nil when it is new. A
// turn that does something else than it did has diverged.
func (j *journal) again(c call, kinds ...swarm.EntryKind) (*swarm.Entry, *abi.Error) {
	e := j.next()
	switch {
	case e == nil && !j.past.offline:
		return nil, nil
	case e == nil:
		return nil, j.over(c)
	}
	for _, k := range kinds {
		if e.Kind == k && e.Call == c.path && e.Op == c.op && bytes.Equal(e.Digest, c.digest) {
			j.pass(e)
			return e, nil
		}
	}
	return nil, j.diverge(c, kinds[0], e)
}

// diverge stops a turn that does not do what is recorded.
func (j *journal) diverge(c call, kind swarm.EntryKind, e *swarm.Entry) *abi.Error {
	return j.diverged(c.op, "the turn did not repeat itself at entry %d: now %s, recorded %s", e.N,
		describe(kind, c.path, c.op, c.digest), describe(e.Kind, e.Call, e.Op, e.Digest))
}

func (j *journal) diverged(op abi.Op, format string, args ...any) *abi.Error {
	j.end("diverged", "", fmt.Sprintf(format, args...))
	return j.off(op)
}

// over stops a turn that is only looked at, where its record ends.
func (j *journal) over(c call) *abi.Error {
	j.past.over = true
	return j.diverged(c.op, "the turn goes on where its record ends: now %s", describe(swarm.EntryCall, c.path, c.op, c.digest))
}

// describe names what a turn does in a way that tells it from everything else.
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

// repeat answers a call as it was answered, and stages again what it staged.
func (o *ops) repeat(ctx context.Context, e *swarm.Entry, req []byte) ([]byte, *abi.Error) {
	h := o.table[e.Op]
	if !h.again || h.now == nil || e.Index == refused || o.j.past.offline {
		return e.Answer, e.Err
	}
	o.j.book.Repeat(e)
	_, fault := h.now(o, context.WithoutCancel(ctx), req)
	o.j.book.Repeat(nil)
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

// skip passes what is recorded of the ops of an action, whose answer is known, and
// tells of each.
func (j *journal) skip(path string, each func(e *swarm.Entry)) {
	for j.behind() {
		e := &j.past.entries[j.past.pos]
		inside := strings.HasPrefix(e.Call, path+".") || e.Call == pathSleep
		if e.Call == path && e.Kind == swarm.EntryAnswer || !inside && e.Kind != swarm.EntryAnswer {
			return
		}
		j.pass(e)
		each(e)
	}
}

// Sleep is the guest's sleep. Before the last recorded entry nobody waits, and
// a sleep that was cut short is as short again.
func (j *journal) sleep(ctx context.Context, d time.Duration) error {
	if j.behind() {
		e := &j.past.entries[j.past.pos]
		if e.Kind == swarm.EntryWait && e.Call == pathSleep {
			j.pass(e)
			return context.Cause(ctx)
		}
	}
	if j.behind() || j.past.offline {
		j.clock.Advance(j.clock.Now().Add(max(0, d)))
		return nil
	}
	err := j.clock.Sleep(ctx, d)
	if err != nil {
		j.add(swarm.Entry{Kind: swarm.EntryWait, Call: pathSleep})
	}
	return err
}

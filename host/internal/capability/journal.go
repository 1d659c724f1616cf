package capability

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"skep/abi"
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

// book is where a journal becomes durable, and where calls are staged. It is a
// *swarm.Turn.
type book interface {
	// Journal is safe for concurrent use.
	Journal(w swarm.JournalWrite) (casOK bool, err error)
	EffectKey(call string) string
	// Reserve and Settle keep the budgets of calls that cost money.
	Reserve(op abi.Op, most swarm.Spend) *abi.Error
	Settle(change swarm.Spend)
	Repeat(e *swarm.Entry)
}

var _ book = (*swarm.Turn)(nil)

// overhead is what an entry counts besides its answer, and slack what entries
// may take beyond the bytes that a turn may move.
const (
	overhead = 64
	slack    = 4 << 20
)

// journal is what a turn has asked and was told, in order. An earlier attempt's
// comes first and answers; then the turn goes on and adds to it. All but flush is
// for the turn's goroutine.
type journal struct {
	book  book
	clock sandbox.Clock
	now   func() time.Time // the host's
	// life is the turn's context; with stop the journal ends the turn.
	life context.Context
	stop context.CancelCauseFunc
	// limit bounds bytes, which counts what the journal holds.
	limit, bytes int64
	// ended says why the journal has stopped the turn.
	ended *swarm.Failure

	past past
	// flights is made with the first effect.
	flights *air
	// aloft are the effects that were submitted, asking the calls that people
	// answer; suspended says that the turn waits for those.
	aloft, asking []*reply
	suspended     bool
	// attempt is the number of this run; marked says that the journal has it.
	attempt int
	marked  bool
	// logs counts the lines for the operator, those of actions as well.
	logs int
	// calls counts those that began, by their ops, on any attempt.
	calls map[abi.Op]int64
	// tally has the calls of all turns; nil counts none.
	tally *Tally

	writing sync.Mutex // held while entries become durable

	mu      sync.Mutex
	header  *swarm.TurnHeader // nil once it is durable
	pending []swarm.Entry     // not durable yet
	last    int64             // number of the last entry
}

// newJournal begins the journal of a turn. life ends with the turn; the journal
// may end it.
func newJournal(life context.Context, b book, clock sandbox.Clock, now func() time.Time) *journal {
	j := &journal{book: b, clock: clock, now: now, attempt: 1, limit: sandbox.DefaultLimits().HostBytes + slack, calls: map[abi.Op]int64{}}
	j.life, j.stop = context.WithCancelCause(life)
	return j
}

// air is what the turn's flights share.
func (j *journal) air() *air {
	if j.flights == nil {
		j.flights = newAir(j.limit)
	}
	return j.flights
}

func (j *journal) bell() bell { return j.air().bell }

// add appends an entry, with the clock as it stands. A turn that is over adds
// nothing: what it is told then it never learns.
func (j *journal) add(e swarm.Entry) (n int64) {
	if j.life.Err() != nil {
		return j.last
	}
	if j.bytes += overhead + int64(len(e.Answer)+len(e.Ran)); j.bytes > j.limit {
		j.end("journal", "limits.host_bytes", fmt.Sprintf("the turn was told more than %d bytes", j.limit))
		return j.last
	}
	e.Time = j.clock.Now()
	if e.Spend != (swarm.Spend{}) && e.Kind != swarm.EntryIntent {
		j.book.Settle(e.Spend)
	}
	j.mark()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.append(e)
	return j.last
}

// append numbers an entry. The caller holds j.mu.
func (j *journal) append(e swarm.Entry) {
	j.last++
	e.N = j.last
	j.count(e)
	j.tally.count(e)
	j.pending = append(j.pending, e)
}

func (j *journal) count(e swarm.Entry) {
	if e.Begins() {
		j.calls[e.Op]++
	}
}

// mark says, once, that from here on an attempt goes on that is not the first.
func (j *journal) mark() {
	if j.marked || j.attempt == 1 {
		return
	}
	j.marked = true
	j.mu.Lock()
	defer j.mu.Unlock()
	j.append(swarm.Entry{Kind: swarm.EntryRun, Index: j.attempt})
}

// told records how a call ended that was done at once.
func (j *journal) told(c call, index int, body []byte, fault *abi.Error) {
	e := c.asked(swarm.EntryCall)
	e.Index, e.Answer, e.Err = index, body, fault
	j.add(e)
}

// flush makes the entries up to the n-th durable, with all that are there. It
// is safe for concurrent use.
func (j *journal) flush(n int64) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	w := swarm.JournalWrite{Header: j.header, Entries: j.pending[:len(j.pending):len(j.pending)]}
	j.mu.Unlock()
	if len(w.Entries) == 0 || w.Entries[0].N > n {
		return nil
	}
	if _, err := j.book.Journal(w); err != nil {
		return err
	}
	j.wrote(len(w.Entries))
	return nil
}

// wrote forgets what is durable. The caller holds j.writing.
func (j *journal) wrote(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.header, j.pending = nil, j.pending[n:]
}

// change is a value that is compared and replaced at once, and what the guest is
// told in either case.
type change struct {
	cas     swarm.KVCas // without its entries
	yes, no []byte
}

// decide applies a change together with all entries so far.
func (j *journal) decide(c call, ch change) ([]byte, *abi.Error) {
	j.clock.Advance(j.now())
	j.mark()
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	w := swarm.JournalWrite{Header: j.header, Entries: j.pending[:len(j.pending):len(j.pending)], Cas: &ch.cas}
	ch.cas.Yes = c.asked(swarm.EntryCall)
	ch.cas.Yes.N, ch.cas.Yes.Time, ch.cas.Yes.Answer = j.last+1, j.clock.Now(), ch.yes
	ch.cas.No = ch.cas.Yes
	ch.cas.No.Answer = ch.no
	j.mu.Unlock()
	ok, err := j.book.Journal(w)
	switch {
	case errors.Is(err, swarm.ErrQuota):
		fault := abi.Errorf(abi.CodeLimit, c.op, "quota", "%v", err)
		j.told(c, 0, nil, fault)
		return nil, fault
	case err != nil:
		return nil, j.lost(c.op, err)
	}
	j.wrote(len(w.Entries))
	j.last++
	j.count(ch.cas.Yes)
	j.tally.count(ch.cas.Yes)
	if ok {
		return ch.yes, nil
	}
	return ch.no, nil
}

// lost ends a turn whose journal cannot be written.
func (j *journal) lost(op abi.Op, err error) *abi.Error {
	j.end("host", "", "the journal cannot be written: "+err.Error())
	return j.off(op)
}

// end stops the turn.
func (j *journal) end(cause, limit, text string) {
	if j.ended == nil {
		j.ended = &swarm.Failure{Cause: cause, Limit: limit, Message: text}
	}
	j.stop(errors.New(text))
}

// off answers the calls of a turn that the journal has stopped; nil before.
func (j *journal) off(op abi.Op) *abi.Error {
	if j.ended == nil {
		return nil
	}
	return abi.Errorf(abi.CodeCancelled, op, "cancelled", "the turn is stopped")
}

// record is what remains to be written once the turn is over. Nothing of it may
// be in the air any more.
func (j *journal) record(end *swarm.TurnEnd) *swarm.Record {
	j.mark()
	j.unsent()
	return &swarm.Record{Header: j.header, Entries: j.pending, End: end}
}

// unsent gives back what was reserved for effects that never left: an intent is
// durable before its request is sent.
func (j *journal) unsent() {
	over := map[string]bool{}
	for _, e := range j.pending {
		over[e.Call] = over[e.Call] || e.Kind == swarm.EntryCancel || e.Kind == swarm.EntryAnswer
	}
	for i := range j.pending {
		e := &j.pending[i]
		if e.Kind == swarm.EntryIntent && e.Spend != (swarm.Spend{}) && !over[e.Call] {
			j.book.Settle(swarm.Spend{}.Minus(e.Spend))
			e.Spend = swarm.Spend{}
		}
	}
}

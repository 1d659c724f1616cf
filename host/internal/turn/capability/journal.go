package capability

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// journalWriter makes a journal durable and stages calls. It is implemented by
// *swarm.Turn.
type journalWriter interface {
	// Journal is safe for concurrent use.
	Journal(w swarm.JournalWrite) (casOK bool, err error)
	EffectKey(call string) string
	// ReserveSpend and SettleSpend account for calls that cost money.
	ReserveSpend(op abi.Op, model string, most swarm.Spend) (day int64, fault *abi.Error)
	SettleSpend(model string, day int64, change swarm.Spend)
	// UseModel notes whose answers are paid for; a re-run notes it again.
	UseModel(name string)
	// NoteModelFailure notes why a call of a model has failed.
	NoteModelFailure(why swarm.ModelFailure)
	SetReplay(e *swarm.Entry)
}

var _ journalWriter = (*swarm.Turn)(nil)

// entryOverhead is the size of an entry beside its answer, journalSlack what all entries
// may take beyond limits.host_bytes; both in bytes.
const (
	entryOverhead = 64
	journalSlack  = 4 << 20
)

// journal records the calls and answers of a turn, in order. The entries of an earlier
// attempt come first and answer the same calls again; then the turn goes on and adds new
// ones. Only flush may run on other goroutines than the turn's.
type journal struct {
	writer journalWriter
	holder holder
	clock  turn.Clock
	now    func() time.Time // of the host
	// ctx is the turn's context; stop ends the turn.
	ctx  context.Context
	stop context.CancelCauseFunc
	// parent is the context of the turn's effects, which may go on when the journal has stopped
	// the turn.
	parent context.Context
	// limit bounds bytes, the size of all entries.
	limit, bytes int64
	// failure is why the journal has stopped the turn.
	failure *swarm.Failure

	prior priorAttempt
	// group is created with the first effect.
	group *opGroup
	// inFlight are the submitted effects, breakpoints the calls that people answer;
	// suspended is set if the turn waits for people.
	inFlight, breakpoints []*reply
	suspended             bool
	// hibernation is set if the turn has given its sandbox up, wokenFrom if it goes on after that.
	hibernation, wokenFrom *hibernation
	// repeated is closed when a turn that is repeated is where it waited.
	repeated chan struct{}
	// attempt is the number of this run; attemptMarked is set once the journal has it.
	attempt       int
	attemptMarked bool
	// logs counts log lines, including the lines of actions.
	logs int
	// calls counts the begun calls of all attempts, by op.
	calls map[abi.Op]int64
	// counter counts the calls of all turns; may be nil. agent is whose turn this is.
	counter *OpCounter
	agent   string
	// shapes are nil for a turn that is not traced.
	shapes *callShapes

	writing sync.Mutex // held while entries become durable

	mu      sync.Mutex
	header  *swarm.TurnHeader // nil once it is durable
	pending []swarm.Entry     // not durable yet
	last    int64             // number of the last entry
}

// newJournal returns an empty journal of a turn. ctx is the turn's context.
func newJournal(ctx context.Context, b journalWriter, h holder, clock turn.Clock, now func() time.Time) *journal {
	j := &journal{writer: b, holder: h, clock: clock, now: now, attempt: 1, limit: turn.DefaultLimits().HostBytes + journalSlack, calls: map[abi.Op]int64{}}
	j.parent = ctx
	j.ctx, j.stop = context.WithCancelCause(ctx)
	return j
}

// asyncGroup returns the shared state of the turn's async ops.
func (j *journal) asyncGroup() *opGroup {
	if j.group == nil {
		j.group = newOpGroup(j.holder, j.limit)
	}
	return j.group
}

func (j *journal) notifier() notifier { return j.asyncGroup().notifier }

// add appends an entry with the current clock. Once the turn is over nothing is added,
// because the guest sees no answer any more.
func (j *journal) add(e swarm.Entry) (n int64) {
	if j.ctx.Err() != nil {
		return j.last
	}
	if j.bytes += entryOverhead + int64(len(e.Answer)+len(e.Ran)); j.bytes > j.limit {
		j.fail("journal", "limits.host_bytes", fmt.Sprintf("the turn was told more than %d bytes", j.limit))
		return j.last
	}
	e.Time = j.clock.Now()
	if e.Spend != (swarm.Spend{}) && e.Kind != swarm.EntryIntent {
		j.writer.SettleSpend(e.Model, e.SpendDay(), e.Spend)
	}
	j.markAttempt()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.append(e)
	j.shapes.observe(&e, false)
	return j.last
}

// append numbers an entry. The caller holds j.mu.
func (j *journal) append(e swarm.Entry) {
	j.last++
	e.N = j.last
	j.countCall(e)
	j.counter.add(j.agent, e)
	j.pending = append(j.pending, e)
}

func (j *journal) countCall(e swarm.Entry) {
	if e.Begins() {
		j.calls[e.Op]++
	}
}

// markAttempt records, once, that a later attempt continues from here.
func (j *journal) markAttempt() {
	if j.attemptMarked || j.attempt == 1 {
		return
	}
	j.attemptMarked = true
	j.mu.Lock()
	defer j.mu.Unlock()
	j.append(swarm.Entry{Kind: swarm.EntryRun, Index: j.attempt})
}

// recordCall records the end of a call that ran at once.
func (j *journal) recordCall(c call, index int, body []byte, fault *abi.Error) {
	e := c.entryWithDigest(swarm.EntryCall)
	e.Index, e.Answer, e.Err = index, body, fault
	j.add(e)
}

// flush makes entry n and all earlier ones durable. It is safe for concurrent use.
func (j *journal) flush(n int64) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	w := swarm.JournalWrite{Header: j.header, Entries: j.pending[:len(j.pending):len(j.pending)]}
	j.mu.Unlock()
	if len(w.Entries) == 0 || w.Entries[0].N > n {
		return nil
	}
	if _, err := j.writer.Journal(w); err != nil {
		return err
	}
	j.markDurable(len(w.Entries))
	return nil
}

// markDurable drops the durable entries from memory. The caller holds j.writing.
func (j *journal) markDurable(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.header, j.pending = nil, j.pending[n:]
}

// casChange is a compare-and-set and its two answers.
type casChange struct {
	cas                swarm.KVCas // its entries are filled in later
	onSwap, onMismatch []byte
}

// compareAndSwap applies a change together with all entries so far.
func (j *journal) compareAndSwap(c call, ch casChange) ([]byte, *abi.Error) {
	j.clock.Advance(j.now())
	j.markAttempt()
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	w := swarm.JournalWrite{Header: j.header, Entries: j.pending[:len(j.pending):len(j.pending)], Cas: &ch.cas}
	ch.cas.Yes = c.entryWithDigest(swarm.EntryCall)
	ch.cas.Yes.N, ch.cas.Yes.Time, ch.cas.Yes.Answer = j.last+1, j.clock.Now(), ch.onSwap
	ch.cas.No = ch.cas.Yes
	ch.cas.No.Answer = ch.onMismatch
	j.mu.Unlock()
	ok, err := j.writer.Journal(w)
	switch {
	case errors.Is(err, swarm.ErrQuota):
		fault := abi.Errorf(abi.CodeLimit, c.op, "quota", "%v", err)
		j.recordCall(c, 0, nil, fault)
		return nil, fault
	case err != nil:
		return nil, j.journalError(c.op, err)
	}
	j.markDurable(len(w.Entries))
	j.last++
	j.countCall(ch.cas.Yes)
	j.counter.add(j.agent, ch.cas.Yes)
	if ok {
		return ch.onSwap, nil
	}
	return ch.onMismatch, nil
}

// journalError ends a turn whose journal cannot be written.
func (j *journal) journalError(op abi.Op, err error) *abi.Error {
	j.fail("host", "", "the journal cannot be written: "+err.Error())
	return j.stoppedError(op)
}

// fail stops the turn.
func (j *journal) fail(cause, limit, text string) {
	if j.failure == nil {
		j.failure = &swarm.Failure{Cause: cause, Limit: limit, Message: text}
	}
	j.stop(errors.New(text))
}

// stoppedError is the error for calls after the journal has stopped the turn; nil before.
func (j *journal) stoppedError(op abi.Op) *abi.Error {
	if j.failure == nil {
		return nil
	}
	return abi.Errorf(abi.CodeCancelled, op, "cancelled", "the turn is stopped")
}

// record returns the entries that remain to be written after the turn. No effect may be
// running any more.
func (j *journal) record(end *swarm.TurnEnd) *swarm.Record {
	j.markAttempt()
	j.refundUnsent()
	return &swarm.Record{Header: j.header, Entries: j.pending, End: end}
}

// refundUnsent refunds the reservations of effects that were never sent: an intent is
// durable before its request is sent.
func (j *journal) refundUnsent() {
	over := map[string]bool{}
	for _, e := range j.pending {
		over[e.Call] = over[e.Call] || e.Kind == swarm.EntryCancel || e.Kind == swarm.EntryAnswer
	}
	for i := range j.pending {
		e := &j.pending[i]
		if e.Kind == swarm.EntryIntent && e.Spend != (swarm.Spend{}) && !over[e.Call] {
			j.writer.SettleSpend(e.Model, e.SpendDay(), swarm.Spend{}.Minus(e.Spend))
			e.Spend = swarm.Spend{}
		}
	}
}

package capability

import (
	"slices"
	"sync"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
)

// fakeWriter keeps what a journal makes durable.
type fakeWriter struct {
	mu     sync.Mutex
	writes []swarm.JournalWrite
	repeat []string // paths of the calls that were repeated
	value  string   // that a cas compares
	err    error
	spent  swarm.Spend
	// held are the bytes that the host holds; full refuses more.
	held int64
	full bool
}

func (b *fakeWriter) HoldBytes(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.full {
		b.held += n
	}
	return !b.full
}

func (b *fakeWriter) ReleaseBytes(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= n
}

func (b *fakeWriter) Journal(w swarm.JournalWrite) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return false, b.err
	}
	w.Entries = slices.Clone(w.Entries)
	ok := true
	if w.Cas != nil {
		last := w.Cas.Yes
		if ok = b.value == string(w.Cas.Expect); ok {
			b.value = string(w.Cas.Value)
		} else {
			last = w.Cas.No
		}
		w.Entries = append(w.Entries, last)
	}
	b.writes = append(b.writes, w)
	return ok, nil
}

func (b *fakeWriter) EffectKey(call string) string { return "key-" + call }

// ReserveSpend refuses what is more than the book has.
func (b *fakeWriter) ReserveSpend(op abi.Op, _ string, most swarm.Spend) (day int64, fault *abi.Error) {
	if b.spent = b.spent.Add(most); b.spent.Tokens > maxFakeTokens {
		b.spent = b.spent.Minus(most)
		return 0, abi.Errorf(abi.CodeLimit, op, "tokens", "there are no more")
	}
	return 1, nil
}

func (*fakeWriter) UseModel(string) {}

func (*fakeWriter) NoteModelFailure(swarm.ModelFailure) {}

func (b *fakeWriter) SettleSpend(_ string, _ int64, change swarm.Spend) {
	b.spent = b.spent.Add(change)
}

const maxFakeTokens = 1000

func (b *fakeWriter) SetReplay(e *swarm.Entry) {
	if e != nil {
		b.repeat = append(b.repeat, e.Call)
	}
}

// durable is all that was made durable.
func (b *fakeWriter) durable() (all []swarm.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.writes {
		all = append(all, w.Entries...)
	}
	return all
}

func (b *fakeWriter) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.writes)
}

// bareOps makes ops without a turn.
func bareOps(t *testing.T, all table) *ops {
	t.Helper()
	o, _ := withOps(t, all)
	return o
}

// ways counts how an op can be done.
func ways(h handler) (n int) {
	for _, set := range []bool{h.direct != nil, h.immediate != nil, h.nested != nil, h.effect != nil, h.dispatch != nil && h.direct == nil} {
		if set {
			n++
		}
	}
	return n
}

package capability

import (
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
)

// loaded is a journal that goes on after the entries of an earlier attempt.
func loaded(t *testing.T, entries ...swarm.Entry) *journal {
	t.Helper()
	j := newJournal(t.Context(), &fakeWriter{}, &fakeWriter{}, &stillClock{later}, func() time.Time { return later })
	j.loadPrior(&swarm.PriorAttempt{Record: swarm.Record{Header: &swarm.TurnHeader{}, Entries: entries}})
	return j
}

// What earlier attempts have recorded counts in the bound of the journal.
func TestPriorEntriesCountInTheBound(t *testing.T) {
	t.Parallel()
	told := swarm.Entry{N: 1, Kind: swarm.EntryCall, Call: "1", Op: abi.OpKVGet, Answer: make([]byte, 100)}
	for limit, fits := range map[int64]bool{2*entryOverhead + 100: true, 2*entryOverhead + 99: false} {
		j := loaded(t, told)
		j.limit = limit
		j.add(swarm.Entry{Kind: swarm.EntryCall, Call: "2", Op: abi.OpKVGet})
		if (j.failure == nil) != fits {
			t.Errorf("with a bound of %d bytes: %+v", limit, j.failure)
		}
	}
}

// The answer of a person that an earlier attempt has recorded is not recorded again.
func TestGivenAnswerIsRecordedOnce(t *testing.T) {
	t.Parallel()
	asked := swarm.Entry{N: 1, Kind: swarm.EntryIntent, Call: "1", Op: abi.OpAction, Index: indexBreakpoint}
	answer := swarm.Entry{N: 2, Kind: swarm.EntryAnswer, Call: "1", Op: abi.OpAction, Answer: []byte(`"yes"`)}
	for _, entries := range [][]swarm.Entry{{asked}, {asked, answer}} {
		j := loaded(t, entries...)
		j.addAnswers([]swarm.Entry{answer})
		if len(j.prior.entries) != 2 || j.last != 2 || len(j.pending) != 2-len(entries) {
			t.Errorf("after %d entries: %d to repeat, the last is %d, %d new", len(entries), len(j.prior.entries), j.last, len(j.pending))
		}
	}
}

// A request that the guest has closed is not sent again by the next attempt.
func TestClosedRequestIsNotSentAgain(t *testing.T) {
	t.Parallel()
	var first fakeWriter
	live(t, &world{}, &first, nil, func(s *transcript) {
		s.submit(abi.OpHTTPFetch, "one").Close()
		s.call(abi.OpKVCas, ">a")
	})
	prior := &swarm.PriorAttempt{Record: swarm.Record{Header: &swarm.TurnHeader{}, Entries: first.durable()}}
	w := &world{}
	live(t, w, &fakeWriter{value: "a"}, prior, func(s *transcript) {
		a := s.submit(abi.OpHTTPFetch, "one")
		if a.(*reply).async != nil {
			t.Error("the request is started again")
		}
		a.Close()
		s.call(abi.OpKVCas, ">a")
	})
	if n := w.count(); n != 0 {
		t.Errorf("%d requests were sent again", n)
	}
}

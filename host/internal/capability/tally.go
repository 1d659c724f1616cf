package capability

import (
	"sync/atomic"

	"skep/abi"
	"skep/host/internal/swarm"
)

// Tally counts the calls of ops by how they ended. Those that are read from a
// record are not counted again, and those that never ended are not counted. The
// zero value is ready; it is safe for concurrent use.
type Tally struct {
	ended [128][16]atomic.Int64 // by the numbers of op and code
}

// Ended is how often calls of an op ended in one way.
type Ended struct {
	Op   abi.Op
	Code abi.Code
	N    int64
}

// All lists what is not zero, in the order of the numbers.
func (t *Tally) All() (all []Ended) {
	for op := range t.ended {
		for code := range t.ended[op] {
			if n := t.ended[op][code].Load(); n > 0 {
				all = append(all, Ended{abi.Op(op), abi.Code(code), n})
			}
		}
	}
	return all
}

// count takes an entry of a journal. Calls of what is no op are nobody's.
func (t *Tally) count(e swarm.Entry) {
	if t == nil || e.Kind != swarm.EntryCall && e.Kind != swarm.EntryAnswer {
		return
	}
	code := abi.CodeOK
	if e.Err != nil {
		code = e.Err.Code
	}
	if _, known := abi.Lookup(e.Op); known && int(e.Op) < len(t.ended) && int(code) < len(t.ended[0]) {
		t.ended[e.Op][code].Add(1)
	}
}

package capability

import (
	"sync/atomic"

	"skep/abi"
	"skep/host/internal/swarm"
)

// OpCounter counts op calls by result code. Calls answered from a record, and calls
// without an end, are not counted. The zero value is ready for use. It is safe for
// concurrent use.
type OpCounter struct {
	ended [128][16]atomic.Int64 // by op and code
}

// Ended is the number of calls of an op that ended with a code.
type Ended struct {
	Op   abi.Op
	Code abi.Code
	N    int64
}

// All returns the counts above zero, ordered by op and code.
func (t *OpCounter) All() (all []Ended) {
	for op := range t.ended {
		for code := range t.ended[op] {
			if n := t.ended[op][code].Load(); n > 0 {
				all = append(all, Ended{abi.Op(op), abi.Code(code), n})
			}
		}
	}
	return all
}

// add counts an entry of a journal. Unknown ops are not counted.
func (t *OpCounter) add(e swarm.Entry) {
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

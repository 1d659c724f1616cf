package capability

import (
	"sync"
	"sync/atomic"

	"skep/abi"
	"skep/host/internal/swarm"
)

// OpCounter counts op calls by result code. Calls answered from a record, and calls
// without an end, are not counted. The zero value is ready for use. It is safe for
// concurrent use.
type OpCounter struct {
	ended [128][16]atomic.Int64 // by op and code

	mu     sync.Mutex
	denied map[Denied]int64 // N is 0 in the keys
}

// maxDenied bounds the agents and ops whose denied calls are counted apart.
const maxDenied = 1000

// Denied is the number of an agent's calls of an op that no grant allows.
type Denied struct {
	Agent string
	Op    abi.Op
	N     int64
}

// Denied returns the calls that no grant allows, in no order. Those of agents beyond a bound
// are counted as "other".
func (t *OpCounter) Denied() (all []Denied) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for d, n := range t.denied {
		all = append(all, Denied{d.Agent, d.Op, n})
	}
	return all
}

func (t *OpCounter) addDenied(agent string, op abi.Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.denied == nil {
		t.denied = map[Denied]int64{}
	}
	key := Denied{Agent: agent, Op: op}
	if _, has := t.denied[key]; !has && len(t.denied) >= maxDenied {
		key.Agent = "other"
	}
	t.denied[key]++
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

// add counts an entry of an agent's journal. Unknown ops are not counted.
func (t *OpCounter) add(agent string, e swarm.Entry) {
	if t == nil || e.Kind != swarm.EntryCall && e.Kind != swarm.EntryAnswer {
		return
	}
	code := abi.CodeOK
	if e.Err != nil {
		code = e.Err.Code
	}
	if _, known := abi.Lookup(e.Op); known && int(e.Op) < len(t.ended) && int(code) < len(t.ended[0]) {
		t.ended[e.Op][code].Add(1)
		if code == abi.CodeDenied {
			t.addDenied(agent, e.Op)
		}
	}
}

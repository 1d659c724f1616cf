package wasmbin

import (
	"fmt"
	"math"
)

// toil adds up the effort of all bodies.
type toil struct {
	code    uint64 // bytes that may be worked on
	sum     uint64
	largest uint64 // edges of the largest body so far
	hardest uint64 // effort of the hardest one
	where   string
}

// leastCode is the code that a small module is taken to have.
const leastCode = 16 << 10

// toiled adds the body just read, and refuses the module when all of them together
// take more than the cap allows for its size. Whatever the body, the engine goes
// through a table as large as the largest body before it.
func (p *parser) toiled() {
	t := &p.toil
	own := p.check.effort.total()
	if own >= t.hardest && p.err == nil {
		t.hardest, t.where = own, fmt.Sprintf("code, above all %s", p.where())
	}
	t.largest = max(t.largest, p.check.effort.edges)
	t.sum = plus(t.sum, plus(own, t.largest))
	got := t.sum / t.code
	if t.sum%t.code != 0 {
		got = plus(got, 1)
	}
	p.m.used.CompileWork = int64(min(got, math.MaxInt64))
	if p.err == nil && got > uint64(max(p.caps.CompileWork, 0)) {
		p.cap("compile_work", got, p.caps.CompileWork, t.where, p.pos)
	}
}

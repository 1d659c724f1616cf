package binary

import (
	"fmt"
	"math"
)

// compileCost adds up the cost of all bodies.
type compileCost struct {
	code    uint64 // bytes of all bodies, at least minCode
	sum     uint64
	largest uint64 // edges of the largest body so far
	dearest uint64 // cost of the dearest one
	where   string
}

// minCode is the size of code below which a module is not judged by its size.
const minCode = 16 << 10

// addBodyCost adds the body just read, and refuses the module when all bodies
// together cost more than the cap allows for their size. For every body the engine
// also clears a table as large as the largest body before it.
func (p *parser) addBodyCost() {
	t := &p.cost
	own := p.check.cost.total()
	if own >= t.dearest && p.err == nil {
		t.dearest, t.where = own, fmt.Sprintf("code, above all %s", p.where())
	}
	t.largest = max(t.largest, p.check.cost.edges)
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

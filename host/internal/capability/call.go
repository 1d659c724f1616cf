package capability

import (
	"crypto/sha256"
	"strconv"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
)

// call is one op that a turn has called: which one, and what it asked.
type call struct {
	// path is its number in the turn, "3", or "3.1" in the action that 3 called.
	path   string
	op     abi.Op
	digest []byte
}

// next numbers a call.
func (o *ops) next(op abi.Op, req []byte) call {
	o.calls++
	sum := sha256.Sum256(req)
	return call{o.prefix + strconv.Itoa(o.calls), op, sum[:]}
}

// inner are the ops of an action that a call runs.
func (o *ops) inner(c call) *ops {
	in := *o
	in.prefix, in.calls = c.path+".", 0
	return &in
}

// entry makes a line of the journal about a call.
func (c call) entry(kind swarm.EntryKind) swarm.Entry {
	return swarm.Entry{Kind: kind, Call: c.path, Op: c.op}
}

// asked makes a line that says what a call asked.
func (c call) asked(kind swarm.EntryKind) swarm.Entry {
	e := c.entry(kind)
	e.Digest = c.digest
	return e
}

// refused marks the entry of a call that did not begin.
const refused = -1

// pathSleep stands for the call in the entry of a sleep that was cut short.
const pathSleep = "sleep"

// waiting is a wait as the journal knows it.
func waiting(replies []*reply, timeout time.Duration) call {
	path := ""
	for i, r := range replies {
		if i > 0 {
			path += ","
		}
		path += r.call.path
	}
	sum := sha256.Sum256([]byte(timeout.String()))
	return call{path: path, digest: sum[:]}
}

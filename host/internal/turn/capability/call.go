package capability

import (
	"crypto/sha256"
	"strconv"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
)

// call identifies one op call of a turn.
type call struct {
	// path is the number of the call in the turn: "3", or "3.1" within the action of call
	// 3.
	path   string
	op     abi.Op
	digest []byte
}

// newCall numbers a call.
func (o *ops) newCall(op abi.Op, req []byte) call {
	o.calls++
	sum := sha256.Sum256(req)
	return call{o.prefix + strconv.Itoa(o.calls), op, sum[:]}
}

// nested returns the ops for an action that a call runs.
func (o *ops) nested(c call) *ops {
	in := *o
	in.prefix, in.calls = c.path+".", 0
	return &in
}

// entry returns a journal entry about a call.
func (c call) entry(kind swarm.EntryKind) swarm.Entry {
	return swarm.Entry{Kind: kind, Call: c.path, Op: c.op}
}

// entryWithDigest returns a journal entry with the digest of the request.
func (c call) entryWithDigest(kind swarm.EntryKind) swarm.Entry {
	e := c.entry(kind)
	e.Digest = c.digest
	return e
}

// indexRefused marks the entry of a call that did not begin.
const indexRefused = -1

// pathSleep is the path in the entry of an interrupted sleep.
const pathSleep = "sleep"

// waitCall is the journal's form of a wait.
func waitCall(replies []*reply, timeout time.Duration) call {
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

package swarm

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"skep/abi"
	"skep/host/internal/swarm/scheduler"
	"skep/spec/mail"
)

// Turn is one agent's handling of one message, as the executor sees it. Its
// mail calls are staged and become visible with the turn's commit. A turn is
// used by one goroutine at a time.
type Turn struct {
	rt   *Runtime
	task *activeTask
	// def is the definition of the task when the turn began.
	def   *Definition
	agent *Agent
	run   *runningTurn
	row   Row
	trace Trace
	// rec is the task's record when the turn began.
	rec   Task
	start time.Time
	// queued is how long the turn waited for its slot.
	queued time.Duration
	// waited is how long its row stood in the queue, 0 where that is not known.
	waited time.Duration
	clock  *Clock
	mark   *runMark
	slot   *scheduler.Slot[claim]
	seed   [32]byte
	ids    *rand.ChaCha8
	input  []byte
	// tools are built when they are first needed.
	tools *toolset

	staged  []stagedCall
	stagedN int
	// excess counts the refused calls beyond what a turn may make, at most maxExcess.
	excess int
	bytes  int
	// endedBy is the tool that ended the turn's mail calls.
	endedBy string
	// refusedActions counts the staged ones.
	refusedActions int
	// ignored means that the incoming broadcast is not added to the history.
	ignored bool
	// kv, blobs, timers and cancelled are staged beside the mail.
	kv    map[kvName]*kvValue
	blobs stagedBlobs
	// buffer counts what the host holds for the turn, and for what it was before it hibernated.
	buffer *TurnBuffer
	// metricReports and spans are for operators.
	metricReports metricReports
	spans         spans
	// acting is the running action, empty for none.
	acting    string
	timers    []timer
	cancelled []string

	// prior is the record of an earlier attempt, replay the recorded call that is being
	// repeated.
	prior  *PriorAttempt
	replay *Entry
	// hibernation is what ran while the turn had no sandbox.
	hibernation Hibernation
	// emits counts what the turn has emitted, repetitions included.
	emits int64
	// journaled is set when the turn has written to its record.
	journaled atomic.Bool

	logs turnLogs
}

// Key is the key of the turn's task.
func (t *Turn) Key() TaskKey { return t.task.key }

// Hops counts the swarms that a message of the turn has passed when it leaves this one.
func (t *Turn) Hops() int { return t.rec.Hops + 1 }

// Trace is the context that goes with what the turn sends to other hosts.
func (t *Turn) Trace() Trace { return t.rt.traces.leaving(t.rec, t.trace) }

// Traced reports whether the turn's calls are told to the observer.
func (t *Turn) Traced() bool {
	if t.rt.traces == nil {
		return false
	}
	_, _, sampled := t.trace.IDs()
	return sampled
}

// Number is the number of the turn's row, and of the turn in its task.
func (t *Turn) Number() int64 { return t.row.N }

// Definition is the digest of the turn's definition.
func (t *Turn) Definition() string { return t.def.Digest }

// Agent is the agent of the turn. It must not be changed.
func (t *Turn) Agent() *Agent { return t.agent }

// Input is the turn's input, JSON of [abi.TurnInput].
func (t *Turn) Input() []byte { return t.input }

// Seed seeds the guest's randomness: the same on every attempt at this turn.
func (t *Turn) Seed() [32]byte { return t.seed }

// Clock is the turn's clock.
func (t *Turn) Clock() *Clock { return t.clock }

// CPU is the turn's claim on the processor.
func (t *Turn) CPU() CPUToken { return CPUToken{t.rt.cpu, t.task.key.schedulerOwner(), t.mark, t.slot} }

// Now is the host's real time, for op clock.now.
func (t *Turn) Now() time.Time { return t.rt.now() }

// Random returns 16 bytes of the turn's own stream, for op random.
func (t *Turn) Random() (b [16]byte) {
	binary.LittleEndian.PutUint64(b[:8], t.ids.Uint64())
	binary.LittleEndian.PutUint64(b[8:], t.ids.Uint64())
	return b
}

// History returns a page of the agent's history as of the turn's start.
func (t *Turn) History(ctx context.Context, after int64, limit int) ([]abi.HistoryEntry, error) {
	entries, err := t.rt.store.History(ctx, t.task.key, t.agent.Name, after, limit)
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		if e.Seq > t.rec.History[t.agent.Name] {
			return entries[:i], nil
		}
	}
	return entries, nil
}

// HistoryCount is the number of entries of the agent's history as of the
// turn's start.
func (t *Turn) HistoryCount() int64 { return t.rec.History[t.agent.Name] }

// newFreshTurn prepares a turn without an earlier attempt. The tail is the agent's
// history tail.
func (r *Runtime) newFreshTurn(t *activeTask, setup *turnSetup, tail []abi.HistoryEntry) (*Turn, error) {
	turn := r.makeTurn(t, setup, r.now())
	input, err := turn.encodeInput(setup.state, tail)
	turn.input = input
	return turn, err
}

// newRepeatedTurn prepares another attempt at a turn.
func (r *Runtime) newRepeatedTurn(t *activeTask, setup *turnSetup, prior *PriorAttempt) (*Turn, error) {
	turn := r.makeTurn(t, setup, prior.Header.Start)
	return turn, turn.startFromPrior(prior)
}

func (r *Runtime) makeTurn(t *activeTask, setup *turnSetup, start time.Time) *Turn {
	row := setup.run.row
	return &Turn{
		rt: r, task: t, def: setup.def, agent: setup.agent, run: setup.run, buffer: setup.buffer, row: row, trace: r.traces.ofTurn(setup.rec, row.N, row.Trace), rec: setup.rec, mark: setup.mark, slot: setup.slot,
		queued: setup.queued, waited: setup.waited, start: start, clock: newClock(start, r.now),
		seed: deriveBytes(r.secret, setup.rec, row.N, labelGuest),
		ids:  rand.NewChaCha8(deriveBytes(r.secret, setup.rec, row.N, "host")),
	}
}

// labelGuest derives the seed of a guest's randomness.
const labelGuest = "guest"

// DeriveSeed returns the seed of a turn's guest, for an offline replay.
func DeriveSeed(secret []byte, rec Task, turn int64) [32]byte {
	return deriveBytes(secret, rec, turn, labelGuest)
}

// deriveBytes derives 32 bytes that only this store can make and that are the same on
// every attempt at a turn: an HMAC (RFC 2104) over the turn id and a label.
func deriveBytes(secret []byte, rec Task, n int64, label string) (out [32]byte) {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s\x1f%x\x1f%d\x1f%s", rec.Key, rec.Nonce, n, label)
	mac.Sum(out[:0])
	return out
}

// wallLimit bounds the wall time of the agent's turns.
func (a *Agent) wallLimit() time.Duration {
	if a.Limits.Wall > 0 {
		return a.Limits.Wall
	}
	return defaultTurn
}

// newID makes an id from the turn's own stream.
func (t *Turn) newID() string { return mail.NewUUID(t.Random()) }

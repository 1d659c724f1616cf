package swarm

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"skep/abi"
	"skep/spec/mail"
)

// Turn is one agent's handling of one message, as the executor sees it. Its
// mail calls are staged and become visible with the turn's commit. A turn is
// used by one goroutine at a time.
type Turn struct {
	rt   *Runtime
	task *live
	// def is what the turn's task went by when the turn began.
	def   *Definition
	agent *Agent
	run   *run
	row   Row
	// rec is the task's record when the turn began.
	rec   Task
	start time.Time
	clock *Clock
	watch *watch
	seat  *seat
	seed  [32]byte
	ids   *rand.ChaCha8
	input []byte

	staged  []effect
	stagedN int
	bytes   int
	// over names the tool that ended the turn's mail calls.
	over string
	// refusedActions counts those that are staged.
	refusedActions int
	// ignored says that the incoming broadcast leaves no trace.
	ignored bool
	emitted emitted
	// kv, blobs, timers and cancelled are staged beside the mail.
	kv    map[kvName]*kvValue
	blobs blobs
	// measured and spans are what it tells operators.
	measured measured
	spans    spans
	// acting names the action that runs in the turn, if one does.
	acting    string
	timers    []timer
	cancelled []string

	// past is what an earlier attempt has left, again the call of it that is
	// being repeated.
	past  *Past
	again *Entry
	// journaled says that the turn has written to its record.
	journaled atomic.Bool

	logsMu sync.Mutex
	logs   []abi.LogRequest
}

// Key names the turn's task; Number is its number in the task.
func (t *Turn) Key() TaskKey { return t.task.key }

// Number is the number of the row the turn handles.
func (t *Turn) Number() int64 { return t.row.N }

// Definition is the digest of the definition that the turn goes by.
func (t *Turn) Definition() string { return t.def.Digest }

// Agent is the agent whose turn it is. It must not be changed.
func (t *Turn) Agent() *Agent { return t.agent }

// Input is the turn's input, JSON of [abi.TurnInput].
func (t *Turn) Input() []byte { return t.input }

// Seed seeds the guest's randomness: the same on every attempt at this turn.
func (t *Turn) Seed() [32]byte { return t.seed }

// Clock is the turn's clock.
func (t *Turn) Clock() *Clock { return t.clock }

// CPU is the turn's claim on the processor.
func (t *Turn) CPU() Token { return Token{t.rt.cpu, t.task.key.InstanceKey, t.watch, t.seat} }

// Now is the host's real time, for op clock.now.
func (t *Turn) Now() time.Time { return t.rt.now() }

// Random returns 16 bytes of the turn's own stream, for op random.
func (t *Turn) Random() (b [16]byte) {
	binary.LittleEndian.PutUint64(b[:8], t.ids.Uint64())
	binary.LittleEndian.PutUint64(b[8:], t.ids.Uint64())
	return b
}

// Log keeps a line of the agent until a durable write covers it, then hands it
// to the host's log.
func (t *Turn) Log(line abi.LogRequest) {
	if t.again != nil {
		return // the earlier attempt has
	}
	t.logsMu.Lock()
	defer t.logsMu.Unlock()
	t.logs = append(t.logs, line)
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

// newTurn prepares a turn. The tail is the agent's history tail.
func (r *Runtime) newTurn(t *live, j *job, tail []abi.HistoryEntry) (*Turn, error) {
	turn := r.bareTurn(t, j, r.now())
	input, err := turn.encode(j.state, tail)
	turn.input = input
	return turn, err
}

// oldTurn prepares a turn that an earlier attempt has begun.
func (r *Runtime) oldTurn(t *live, j *job, past *Past) (*Turn, error) {
	turn := r.bareTurn(t, j, past.Header.Start)
	return turn, turn.adopt(past)
}

func (r *Runtime) bareTurn(t *live, j *job, start time.Time) *Turn {
	row := j.run.row
	return &Turn{
		rt: r, task: t, def: j.def, agent: j.agent, run: j.run, row: row, rec: j.rec, watch: j.watch, seat: j.seat,
		start: start, clock: newClock(start, r.now),
		seed: derive(r.secret, j.rec, row.N, labelGuest),
		ids:  rand.NewChaCha8(derive(r.secret, j.rec, row.N, "host")),
	}
}

// labelGuest is the label of what seeds a guest's randomness.
const labelGuest = "guest"

// Seed is what seeded a turn's guest, for whoever runs it again elsewhere.
func Seed(secret []byte, rec Task, turn int64) [32]byte { return derive(secret, rec, turn, labelGuest) }

// derive makes 32 bytes that only this store can make and that are the same
// on every attempt at a turn: an HMAC over the turn id and a label.
func derive(secret []byte, rec Task, n int64, label string) (out [32]byte) {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s\x1f%x\x1f%d\x1f%s", rec.Key, rec.Nonce, n, label)
	mac.Sum(out[:0])
	return out
}

// wall is the longest the turn may take.
func (t *Turn) wall() time.Duration {
	if t.agent.Limits.Wall > 0 {
		return t.agent.Limits.Wall
	}
	return defaultTurn
}

// newID makes an id from the turn's own stream.
func (t *Turn) newID() string { return mail.NewUUID(t.Random()) }

// flushLogs hands all lines the turn has left to the host's log, after the
// write that covers them.
func (t *Turn) flushLogs() { t.releaseLogs(math.MaxInt) }

// releaseLogs hands the next n lines to the host's log.
func (t *Turn) releaseLogs(n int) {
	t.logsMu.Lock()
	lines := t.logs[:min(n, len(t.logs))]
	t.logs = t.logs[len(lines):]
	t.logsMu.Unlock()
	for _, l := range lines {
		level := slog.LevelInfo
		if err := level.UnmarshalText([]byte(l.Level)); err != nil {
			level = slog.LevelInfo
		}
		attrs := []slog.Attr{
			slog.String("tenant", t.task.key.Tenant), slog.String("swarm", t.def.Name), slog.String("agent", t.agent.Name),
			slog.String("task_id", t.task.key.Task), slog.Int64("turn", t.row.N),
		}
		if len(l.Fields) > 0 {
			attrs = append(attrs, slog.Any("fields", l.Fields))
		}
		t.rt.log.LogAttrs(context.Background(), level, l.Message, attrs...)
	}
}

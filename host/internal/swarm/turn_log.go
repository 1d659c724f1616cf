package swarm

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"sync"

	"skep/abi"
)

// eventLogged has the lines that an agent has logged in a turn.
const eventLogged = "agent_logged"

// maxLoggedBytes bounds the lines of one turn, as JSON, in its task's log. Others are counted.
const maxLoggedBytes = 64 << 10

// turnLogs are the lines that an agent has logged in a turn.
type turnLogs struct {
	mu sync.Mutex
	// pending wait for the durable write that covers them.
	pending []abi.LogRequest
	// lines are those for the task's log, with their bytes; leftOut counts what did not fit.
	lines          []abi.LogRequest
	bytes, leftOut int
}

// copyLines takes the lines for the task's log from another part of the turn.
func (g *turnLogs) copyLines(from *turnLogs) {
	from.mu.Lock()
	defer from.mu.Unlock()
	g.lines, g.bytes, g.leftOut = from.lines, from.bytes, from.leftOut
}

// logSize is what a line takes in a list: the bytes of its JSON, with a comma.
func logSize(l abi.LogRequest) int {
	encoded, _ := json.Marshal(l) // what was decoded always encodes
	return len(encoded) + 1
}

// Log keeps a line of the agent for the log of its task, and until a durable write covers it for
// the host's log.
func (t *Turn) Log(line abi.LogRequest) {
	if t.isRepeatingItself() {
		return
	}
	g := &t.logs
	g.mu.Lock()
	defer g.mu.Unlock()
	if size := logSize(line); g.leftOut > 0 || g.bytes+size > maxLoggedBytes {
		g.leftOut++
	} else {
		g.lines, g.bytes = append(g.lines, line), g.bytes+size
	}
	if t.replay == nil { // else the earlier attempt has logged it
		g.pending = append(g.pending, line)
	}
}

// logLines adds the turn's lines to the log of its task, which its owner reads.
func (mut *mutationBuilder) logLines(t *Turn) {
	g := &t.logs
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.lines) == 0 && g.leftOut == 0 {
		return
	}
	extra := map[string]any{"caller": t.agent.Name, "turn": t.row.N, "lines": g.lines}
	if g.leftOut > 0 {
		extra["left_out"] = g.leftOut
	}
	mut.logEvent(eventLogged, "agent "+t.agent.Name+" has logged", extra)
}

// flushLogs writes all lines of the turn to the host's log, after the write that covers
// them.
func (t *Turn) flushLogs() { t.releaseLogs(math.MaxInt) }

// releaseLogs writes the next n lines to the host's log: their words where the operator may read
// what is said in tasks, else how many they are.
func (t *Turn) releaseLogs(n int) {
	t.logs.mu.Lock()
	lines := t.logs.pending[:min(n, len(t.logs.pending))]
	t.logs.pending = t.logs.pending[len(lines):]
	t.logs.mu.Unlock()
	if len(lines) == 0 {
		return
	}
	attrs := []slog.Attr{
		slog.String("tenant", t.task.key.Tenant), slog.String("swarm", t.def.Name), slog.String("agent", t.agent.Name),
		slog.String("task_id", t.task.key.Task), slog.Int64("turn", t.row.N),
	}
	if !t.rt.logWords {
		t.logShape(lines, attrs)
		return
	}
	for _, l := range lines {
		own := attrs[:len(attrs):len(attrs)]
		if len(l.Fields) > 0 {
			own = append(own, slog.Any("fields", l.Fields))
		}
		t.rt.log.LogAttrs(context.Background(), logLevel(l), l.Message, own...)
	}
}

// logShape writes one line for all, at the highest of their levels.
func (t *Turn) logShape(lines []abi.LogRequest, attrs []slog.Attr) {
	level, bytes := slog.LevelDebug, 0
	for _, l := range lines {
		level, bytes = max(level, logLevel(l)), bytes+logSize(l)
	}
	t.rt.log.LogAttrs(context.Background(), level, "an agent has logged; the task's log has its words", append(attrs, slog.Int("lines", len(lines)), slog.Int("bytes", bytes))...)
}

// logLevel is a line's level, info for one that has none.
func logLevel(l abi.LogRequest) (level slog.Level) {
	if level.UnmarshalText([]byte(l.Level)) != nil {
		return slog.LevelInfo
	}
	return level
}

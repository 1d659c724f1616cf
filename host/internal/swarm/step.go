package swarm

import (
	"encoding/json"
	"slices"
	"time"

	"skep/abi"
	"skep/spec/mail"
)

// step builds one [Step] of a task from its live state. It changes nothing
// until the store has it and [live.apply] is called.
type step struct {
	Step
	def  *Definition
	now  time.Time
	live *live
	// left counts the rows that can still make the task progress.
	left int
	// letters counts those that are to be delivered.
	letters int
	// ended is set when the step ends the task; kill says that the turns
	// that run must stop.
	ended, kill bool
	// resolved are the answers this step gives to waiting posts.
	resolved map[int64]Answer
	posts    postsStep
	// unread are rows that it consumes and that no turn has.
	unread []int64
	// cost is that of the turn this step commits; the first message the turn
	// has sent carries it in the log.
	cost *Usage
	// failed says why the turn that this step commits has failed.
	failed string
}

// begin starts a step. The caller holds t.commit and t.mu.
func (t *live) begin(now time.Time) *step {
	s := &step{def: t.def, now: now, live: t, left: t.pending(), letters: len(t.letters)}
	s.Task = t.rec.clone()
	s.Task.Updated = now
	if s.Task.History == nil {
		s.Task.History = map[string]int64{}
	}
	return s
}

// consume takes the row of a running turn off the queue.
func (s *step) consume(row Row) {
	s.Consume = append(s.Consume, row.N)
	s.dropBreakpoint(row.N)
	delete(s.Task.Metered, row.N)
	s.handle(row.N)
	s.left--
}

// void takes a row off the queue, or out of the stash, that no turn has.
func (s *step) void(row Row) {
	s.Consume = append(s.Consume, row.N)
	delete(s.Task.Metered, row.N)
	s.unread = append(s.unread, row.N)
}

// insert adds a row for one recipient and logs its new_message event. A row
// for a task that no longer runs joins the stash.
func (s *step) insert(row Row) int64 {
	row = s.queue(row)
	s.newMessage(row.Message, map[string]any{"recipient": row.Agent})
	return row.N
}

// number gives the next number of a row.
func (s *step) number() int64 {
	s.Task.Rows++
	return s.Task.Rows
}

// queue adds a row and logs nothing.
func (s *step) queue(row Row) Row {
	row.N = s.number()
	row.Stash = s.Task.State != StateRunning || s.Task.Grace && row.Message.Payload.Subject != mail.SubjectMaximumStepsReached
	if !row.Stash {
		s.left++
	}
	s.Insert = append(s.Insert, row)
	return row
}

// newMessage logs that a message was made.
func (s *step) newMessage(m mail.Message, extra map[string]any) {
	if s.cost != nil {
		cost := map[string]any{
			"fuel": s.cost.Fuel, "cpu_ms": float64(s.cost.CPU.Microseconds()) / 1e3, "host_calls": s.cost.HostCalls,
		}
		if s.cost.Spend != (Spend{}) {
			cost["tokens"], cost["micro_usd"] = s.cost.Tokens, s.cost.MicroUSD
		}
		extra["cost"] = cost
		s.cost = nil
	}
	raw, err := m.AppendJSON([]byte(`{"full_message":`))
	if err != nil { // what has come this far is valid; the log is JSON in any case
		raw = append(raw, "null"...)
	}
	rest, _ := json.Marshal(extra) // of our own making
	s.log("new_message", "", append(append(raw, ','), rest[1:]...))
}

// event logs an event. An empty description is rendered when it is read.
func (s *step) event(name, description string, extra map[string]any) int64 {
	var raw json.RawMessage
	if len(extra) > 0 {
		// Every value is of our own making and encodes.
		raw, _ = json.Marshal(extra)
	}
	return s.log(name, description, raw)
}

func (s *step) log(name, description string, extra json.RawMessage) int64 {
	s.Task.Cursor++
	s.Events = append(s.Events, Event{
		Seq: s.Task.Cursor, Name: name, Time: s.now, Description: description, Extra: extra,
	})
	return s.Task.Cursor
}

// remember appends to one agent's history.
func (s *step) remember(agent string, turn int64, e abi.HistoryEntry) {
	s.Task.History[agent]++
	e.Seq, e.Turn = s.Task.History[agent], turn
	if e.Time == "" {
		e.Time = mail.FormatTime(s.now)
	}
	s.History = append(s.History, AgentEntry{agent, e})
}

func (s *step) rememberMessage(agent string, turn int64, m mail.Message) {
	raw, _ := m.AppendJSON(nil) // what has come this far is valid
	s.remember(agent, turn, abi.HistoryEntry{Kind: abi.KindIn, Message: raw})
}

// settle applies the stall rule: a running task without a row that could make
// it progress ends in this very step.
func (s *step) settle() {
	s.finishErrands()
	if s.Task.State != StateRunning || s.left > 0 || s.letters > 0 || s.Task.waitsAbroad() {
		return
	}
	if s.Task.Grace {
		s.endBySystem(StateFailed, mail.SubjectRuntimeError, s.graceText())
		return
	}
	text := "stalled: no message is waiting and no agent has completed the task, so nothing could happen any more"
	if s.failed != "" {
		text += "; " + s.failed // nobody else is told, where the system had sent the message
	}
	s.endBySystem(StateFailed, mail.SubjectRuntimeError, text)
}

// apply makes a durable step visible in memory. The caller holds t.commit and
// t.mu.
func (t *live) apply(s *step) {
	t.exists, t.rec = true, s.Task
	t.drop(s.unread)
	switch {
	case s.Stash:
		t.stashRunning(s.kill)
		t.stashAll()
	case s.Unstash:
		t.unstashAll()
	}
	for _, row := range s.Insert {
		t.enqueue(row)
	}
	t.applyLetters(s.Step)
	t.preempt(s.Insert)
	for _, e := range s.History {
		t.extend(e)
	}
	for _, st := range s.States {
		t.states[st.Agent] = st.State
	}
	t.posts.apply(s.posts)
	for row, answer := range s.resolved {
		for _, ch := range t.waiters[row] {
			ch <- answer
		}
		delete(t.waiters, row)
	}
	t.notify()
}

// stashRunning stops the turns that run, if the task ended under them; their
// input stays in the stash.
func (t *live) stashRunning(kill bool) {
	if !kill {
		return
	}
	for _, r := range t.running {
		if r.killed {
			continue
		}
		r.killed = true
		t.stash = append(t.stash, r.row)
		r.cancel(errTaskEnded)
	}
}

// extend keeps the tail of a history in memory within the bounds of a turn's
// input. A tail that was never loaded stays unloaded.
func (t *live) extend(e AgentEntry) {
	tail, ok := t.tails[e.Agent]
	if !ok && e.Entry.Seq > 1 {
		return
	}
	full := append(tail, e.Entry)
	tail = boundTail(full[max(0, len(full)-abi.HistoryTailEntries):])
	if len(tail) < len(full) {
		tail = slices.Clone(tail) // let go of what was dropped
	}
	t.tails[e.Agent] = tail
}

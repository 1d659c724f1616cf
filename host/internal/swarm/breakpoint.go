package swarm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"skep/abi"
	"skep/spec/mail"
)

// Breakpoint is a suspended turn: it waits for what only a person can answer.
type Breakpoint struct {
	// Row is the turn's row, which is kept.
	Row   int64  `json:"row"`
	Agent string `json:"agent"`
	Asks  []Ask  `json:"asks"`
	// Off says that somebody has written instead of answering: the turn goes on
	// to its end, and nobody answers what it asks on the way.
	Off bool `json:"off,omitempty"`
}

// Ask is one call that a person answers.
type Ask struct {
	// Call is the call's path in its turn.
	Call string `json:"call"`
	Op   abi.Op `json:"op"`
	// ID names the call to people; it is unique in the task.
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
	// Told is the answer, nil while there is none.
	Told *Told `json:"told,omitempty"`
}

// Told is what came of an [Ask]: a text, or a fault.
type Told struct {
	Text    string    `json:"text,omitempty"`
	Code    abi.Code  `json:"code,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Time    time.Time `json:"time"`
}

// fault is the error of an answer, nil for a text.
func (t Told) fault(op abi.Op) *abi.Error {
	if t.Code == abi.CodeOK {
		return nil
	}
	return &abi.Error{Code: t.Code, Op: op.String(), Reason: t.Reason, Message: t.Message}
}

// MaxAsked bounds the arguments, and the answers, of all calls of a turn that
// wait for people, in bytes.
const MaxAsked = MaxBody

// Asks reports whether a call of a MAIL tool, by op mail, or of an action waits
// for a person.
func (t *Turn) Asks(op abi.Op, name string) bool {
	if op == abi.OpMail {
		return t.over == "" && slices.Contains(t.def.BreakpointTools, name) && t.granted(name)
	}
	return slices.Contains(t.agent.Actions, name) &&
		(slices.Contains(t.def.BreakpointTools, name) || t.def.human(name))
}

// human reports whether an action is done by people.
func (d *Definition) human(name string) bool {
	return slices.ContainsFunc(d.Human, func(a abi.Tool) bool { return a.Name == name })
}

// AskID names a call to people.
func (t *Turn) AskID(call string) string { return fmt.Sprintf("t%d.c%s", t.row.N, call) }

// given are the answers to a suspended turn, in the form of its journal.
func (b Breakpoint) given() (out []Entry) {
	for _, a := range b.Asks {
		if a.Told == nil {
			continue
		}
		e := Entry{Kind: EntryAnswer, Call: a.Call, Op: a.Op, Err: a.Told.fault(a.Op), Time: a.Told.Time}
		if e.Err == nil {
			e.Answer, _ = json.Marshal(abi.MailResponse{Text: a.Told.Text}) // always encodes
		}
		out = append(out, e)
	}
	return out
}

// breakpoint returns the suspended turn of a row.
func (t Task) breakpoint(row int64) (Breakpoint, bool) {
	i := slices.IndexFunc(t.Breakpoints, func(b Breakpoint) bool { return b.Row == row })
	if i < 0 {
		return Breakpoint{}, false
	}
	return t.Breakpoints[i], true
}

// suspend keeps a turn for later: its row stays, and the task pauses.
func (s *step) suspend(t *Turn, asks []Ask) {
	s.left--
	s.handle(t.row.N)
	s.dropBreakpoint(t.row.N)
	s.Task.Breakpoints = append(s.Task.Breakpoints, Breakpoint{Row: t.row.N, Agent: t.agent.Name, Asks: asks})
	var names, args []string
	for _, a := range asks {
		names, args = append(names, a.Name), append(args, string(a.Args))
	}
	s.event("breakpoint_tool_call", fmt.Sprintf("agent %s used breakpoint tools %s with args: %s",
		t.agent.Name, strings.Join(names, ", "), strings.Join(args, ", ")), map[string]any{
		"caller": t.agent.Name, "calls": json.RawMessage(functionCalls(asks)), // a later suspension has no answer that shows them
	})
	if s.Task.State == StateRunning {
		s.pause(t.agent.Name, asks)
	}
}

// pause stops a running task until somebody answers.
func (s *step) pause(agent string, asks []Ask) {
	body := functionCalls(asks)
	m := s.systemMessage(mail.BroadcastComplete, "", mail.SubjectBreakpointToolCall, body)
	for _, a := range s.def.Agents {
		s.rememberMessage(a.Name, 0, m)
	}
	if s.Task.foreign() {
		s.failCaller(mail.SubjectBreakpointToolCall, body, true)
	}
	s.Task.State = StatePaused
	s.stashRest()
	s.answer("task_complete", Answer{State: StatePaused, Subject: mail.SubjectBreakpointToolCall, Body: body, Caller: agent}, answersHandled)
}

// functionCall is one pending call as whoever posted sees it (contract 5.5).
type functionCall struct {
	Arguments string `json:"arguments"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Type      string `json:"type"`
	ID        string `json:"id"`
	Status    string `json:"status"`
}

func functionCalls(asks []Ask) string {
	list := make([]functionCall, len(asks))
	for i, a := range asks {
		list[i] = functionCall{string(a.Args), a.ID, a.Name, "function_call", "fc_" + a.ID, "completed"}
	}
	raw, _ := json.Marshal(list) // strings always encode
	return string(raw)
}

func (s *step) dropBreakpoint(row int64) {
	s.Task.Breakpoints = slices.DeleteFunc(s.Task.Breakpoints, func(b Breakpoint) bool { return b.Row == row })
}

// Results answer the calls for which a paused task waits.
type Results struct {
	// Caller names the agent that waits; empty for whichever it is.
	Caller string
	// One answers the only call there is. Each answers several, by their ids.
	One  *string
	Each []CallResult
}

// CallResult is the answer to one call.
type CallResult struct{ Call, Content string }

// pendingAsks are the calls that wait for an answer.
func (t Task) pendingAsks() (asks []*Ask, agents []string) {
	for i := range t.Breakpoints {
		b := &t.Breakpoints[i]
		for k := range b.Asks {
			if b.Asks[k].Told == nil {
				asks, agents = append(asks, &b.Asks[k]), append(agents, b.Agent)
			}
		}
	}
	return asks, agents
}

// check says why results do not fit what the task waits for.
func (p Results) check(t Task) error {
	asks, agents := t.pendingAsks()
	size := 0
	if p.One != nil {
		size = len(*p.One)
	}
	known := 0
	for _, one := range p.Each {
		size += len(one.Content)
		if slices.ContainsFunc(asks, func(a *Ask) bool { return a.ID == one.Call }) {
			known++
		}
	}
	switch {
	case t.State != StatePaused || len(asks) == 0:
		return refuse(ErrInvalid, "task '%s' has no pending breakpoint tool calls", t.Key.Task)
	case p.Caller != "" && !slices.Contains(agents, p.Caller):
		return refuse(ErrInvalid, "agent '%s' has no pending breakpoint tool calls in task '%s'", p.Caller, t.Key.Task)
	case p.One != nil && len(asks) > 1:
		return refuse(ErrInvalid, "task '%s' waits for %d breakpoint tool calls; give an array of objects with call_id and content", t.Key.Task, len(asks))
	case p.One == nil && known == 0:
		return refuse(ErrInvalid, "none of the results is for a pending breakpoint tool call of task '%s'", t.Key.Task)
	case size > MaxAsked:
		return refuse(ErrInvalid, "the results have %d bytes, at most %d", size, MaxAsked)
	}
	return nil
}

// find returns the answer to a call.
func (p Results) find(id string) (string, bool) {
	if p.One != nil {
		return *p.One, true
	}
	i := slices.IndexFunc(p.Each, func(r CallResult) bool { return r.Call == id })
	if i < 0 {
		return "", false
	}
	return p.Each[i].Content, true
}

// resume makes a paused task run on with answers. It returns the row of the turn
// that goes on.
func (s *step) resume(p Post) (row int64) {
	row = s.Task.Breakpoints[0].Row
	for i := range s.Task.Breakpoints {
		b := &s.Task.Breakpoints[i]
		b.Asks = slices.Clone(b.Asks)
		for k := range b.Asks {
			if b.Asks[k].Told == nil {
				b.Asks[k].Told = s.tell(b.Agent, b.Asks[k], *p.Results)
			}
		}
	}
	s.Task.State = StateRunning
	s.restore()
	return row
}

func (s *step) tell(agent string, a Ask, results Results) *Told {
	text, ok := results.find(a.ID)
	if !ok {
		return &Told{Code: abi.CodeUnavailable, Reason: "no_result", Message: "the task was resumed without a result of this call", Time: s.now}
	}
	s.event("breakpoint_action_complete", "breakpoint action complete (caller = "+agent+"):\n"+text,
		map[string]any{"caller": agent, "tool_call_id": a.ID})
	return &Told{Text: text, Time: s.now}
}

// rebase gives up a suspended turn that cannot go on, and lets its agent begin
// anew with the answers in its history, as MAIL has it.
func (s *step) rebase(t *Turn, b Breakpoint, why string) {
	name := t.agent.Name
	s.rememberMessage(name, t.row.N, t.row.Message)
	for _, a := range b.Asks {
		fault := a.Told.fault(a.Op)
		text := a.Told.Text
		if fault != nil {
			text = "ERROR: " + fault.Message
		}
		s.remember(name, t.row.N, abi.HistoryEntry{Kind: abi.KindCall, Call: &abi.Call{ID: a.ID, Name: a.Name, Args: a.Args}})
		s.remember(name, t.row.N, abi.HistoryEntry{Kind: abi.KindResult, Result: &abi.Result{ID: a.ID, OK: fault == nil, Text: text}})
	}
	s.event("turn_rebased", "agent "+name+" begins anew: "+why, map[string]any{"caller": name, "turn": t.row.N})
	m := s.systemMessage(mail.Broadcast, name, mail.SubjectActionCompleteBcast, "")
	s.queue(Row{Agent: name, Tier: mail.Tier(m), Message: m, Origin: Origin{Door: "system"}, Cause: t.id()})
}

// rebases reports whether a failed turn was suspended and answered, and cannot
// go on because of what it ran on.
func (s *step) rebases(t *Turn, f Failure) (Breakpoint, bool) {
	b, ok := s.Task.breakpoint(t.row.N)
	for _, a := range b.Asks {
		ok = ok && a.Told != nil
	}
	return b, ok && f.Cause == CauseModule
}

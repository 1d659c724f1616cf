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
	return t.HasAction(name) && t.Personal(name)
}

// HasAction reports whether the turn's agent may call an action.
func (t *Turn) HasAction(name string) bool { return slices.Contains(t.agent.Actions, name) }

// Personal reports whether every call of an action waits for a person, whoever
// makes it.
func (t *Turn) Personal(name string) bool {
	return slices.Contains(t.def.BreakpointTools, name) || t.def.human(name)
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
	s.await(t.agent.Name, functionCalls(asks))
}

// await logs calls that wait for people, and pauses a running task until somebody
// answers. To a paused one they are added: [Task.Calls] has them all.
func (s *step) await(agent string, calls []functionCall) {
	var names, args []string
	for _, c := range calls {
		names, args = append(names, c.Name), append(args, c.Arguments)
	}
	raw, _ := json.Marshal(calls) // strings always encode
	s.event("breakpoint_tool_call", fmt.Sprintf("agent %s used breakpoint tools %s with args: %s",
		agent, strings.Join(names, ", "), strings.Join(args, ", ")), map[string]any{"caller": agent, "calls": json.RawMessage(raw)})
	switch {
	case s.Task.State == StateRunning:
		s.pause(agent, string(raw))
	case s.Task.State == StatePaused && s.Task.foreign():
		s.failCaller(mail.SubjectBreakpointToolCall, string(raw), true)
	}
}

// pause stops a running task until somebody answers. body is the list of calls.
func (s *step) pause(agent, body string) {
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
	// Swarm is the peer where the call waits, empty for one of this swarm.
	Swarm string `json:"swarm,omitempty"`
}

func functionCalls(asks []Ask) []functionCall {
	list := make([]functionCall, len(asks))
	for i, a := range asks {
		list[i] = functionCall{
			Arguments: string(a.Args), CallID: a.ID, Name: a.Name, Type: "function_call", ID: "fc_" + a.ID, Status: "completed",
		}
	}
	return list
}

// Calls is the list of all calls that wait for people, as whoever posted sees them.
func (t Task) Calls() string {
	raw, _ := json.Marshal(t.calls()) // strings always encode
	return string(raw)
}

func (t Task) calls() (list []functionCall) {
	for _, b := range t.Breakpoints {
		list = append(list, functionCalls(slices.DeleteFunc(slices.Clone(b.Asks), func(a Ask) bool { return a.Told != nil }))...)
	}
	for _, a := range t.PeerAsks {
		list = append(list, a.shown())
	}
	return list
}

func (s *step) dropBreakpoint(row int64) {
	s.Task.Breakpoints = slices.DeleteFunc(s.Task.Breakpoints, func(b Breakpoint) bool { return b.Row == row })
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

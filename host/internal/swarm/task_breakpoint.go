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

// Breakpoint is a suspended turn: it waits for answers that only a person can give.
type Breakpoint struct {
	// Row is the turn's row; it stays in the store.
	Row   int64            `json:"row"`
	Agent string           `json:"agent"`
	Calls []BreakpointCall `json:"asks"`
	// Cancelled is set when the user has posted instead of answering: the turn goes on
	// to its end, and its further calls of this kind are answered CANCELLED.
	Cancelled bool `json:"off,omitempty"`
	// Emitted is how many emissions of the turn are in the log already.
	Emitted int64 `json:"emitted,omitempty"`
	// Since is when the turn was suspended; zero in older records.
	Since time.Time `json:"since,omitzero"`
}

// BreakpointCall is one call that a person answers.
type BreakpointCall struct {
	// Call is the call's path in its turn.
	Call string `json:"call"`
	Op   abi.Op `json:"op"`
	// ID names the call to people and is unique in the task.
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
	// Result is the answer, nil while there is none.
	Result *BreakpointResult `json:"told,omitempty"`
}

// BreakpointResult is the result of a [BreakpointCall]: a text, or a fault.
type BreakpointResult struct {
	Text    string    `json:"text,omitempty"`
	Code    abi.Code  `json:"code,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Time    time.Time `json:"time"`
}

// abiError is the error of an answer, nil for a text.
func (t BreakpointResult) abiError(op abi.Op) *abi.Error {
	if t.Code == abi.CodeOK {
		return nil
	}
	return &abi.Error{Code: t.Code, Op: op.String(), Reason: t.Reason, Message: t.Message}
}

// MaxBreakpointBytes bounds the arguments, and the answers, of all calls of a turn that
// wait for people, in bytes.
const MaxBreakpointBytes = MaxBody

// NeedsPerson reports whether a call of a MAIL tool (op mail) or of an action waits for
// a person.
func (t *Turn) NeedsPerson(op abi.Op, name string) bool {
	if op == abi.OpMail {
		return t.endedBy == "" && slices.Contains(t.def.BreakpointTools, name) && t.hasTool(name)
	}
	return t.HasAction(name) && t.ActionNeedsPerson(name)
}

// HasAction reports whether the turn's agent may call an action.
func (t *Turn) HasAction(name string) bool { return slices.Contains(t.agent.Actions, name) }

// ActionNeedsPerson reports whether every call of an action waits for a person,
// independent of the caller.
func (t *Turn) ActionNeedsPerson(name string) bool {
	return slices.Contains(t.def.BreakpointTools, name) || t.def.isHumanAction(name)
}

// isHumanAction reports whether people perform an action.
func (d *Definition) isHumanAction(name string) bool {
	return slices.ContainsFunc(d.Human, func(a abi.Tool) bool { return a.Name == name })
}

// CallID is the id of a call that people see.
func (t *Turn) CallID(call string) string { return fmt.Sprintf("t%d.c%s", t.row.N, call) }

// journalEntries returns the answers to a suspended turn as journal entries.
func (b Breakpoint) journalEntries() (out []Entry) {
	for _, a := range b.Calls {
		if a.Result == nil {
			continue
		}
		e := Entry{Kind: EntryAnswer, Call: a.Call, Op: a.Op, Err: a.Result.abiError(a.Op), Time: a.Result.Time}
		if e.Err == nil {
			e.Answer, _ = json.Marshal(abi.MailResponse{Text: a.Result.Text}) // always encodes
		}
		out = append(out, e)
	}
	return out
}

// findBreakpoint returns the suspended turn of a row.
func (t Task) findBreakpoint(row int64) (Breakpoint, bool) {
	i := slices.IndexFunc(t.Breakpoints, func(b Breakpoint) bool { return b.Row == row })
	if i < 0 {
		return Breakpoint{}, false
	}
	return t.Breakpoints[i], true
}

// suspendTurn keeps a turn for later: its row stays, and the task pauses.
func (mut *mutationBuilder) suspendTurn(t *Turn, asks []BreakpointCall) {
	mut.progressing--
	mut.markHandled(t.row.N)
	mut.dropBreakpoint(t.row.N)
	b := Breakpoint{Row: t.row.N, Agent: t.agent.Name, Calls: asks, Since: mut.now}
	if k := &t.run.emitted; k.exchange != 0 {
		// A gateway's reader has seen it, and the turn may never go on.
		mut.logEmitted(t, false)
		b.Emitted = max(k.n, k.logged)
	}
	mut.Task.Breakpoints = append(mut.Task.Breakpoints, b)
	mut.waitForPeople(t.agent.Name, functionCalls(asks))
}

// waitForPeople logs calls that wait for people and pauses a running task until they
// are answered. In a paused task the calls are added; [Task.Calls] returns all.
func (mut *mutationBuilder) waitForPeople(agent string, calls []functionCall) {
	var names, args []string
	for _, c := range calls {
		names, args = append(names, c.Name), append(args, c.Arguments)
	}
	raw, _ := json.Marshal(calls) // strings always encode
	mut.logEvent("breakpoint_tool_call", fmt.Sprintf("agent %s used breakpoint tools %s with args: %s",
		agent, strings.Join(names, ", "), strings.Join(args, ", ")), map[string]any{"caller": agent, "calls": json.RawMessage(raw)})
	switch {
	case mut.Task.State == StateRunning:
		mut.pauseTask(agent, string(raw))
	case mut.Task.State == StatePaused && mut.Task.isForeign():
		mut.sendCallerFailure(mail.SubjectBreakpointToolCall, string(raw), true)
	}
	if mut.Task.State == StatePaused {
		mut.addQuestionNotice(agent, calls)
	}
}

// pauseTask pauses a running task until its calls are answered. body is the list of
// calls.
func (mut *mutationBuilder) pauseTask(agent, body string) {
	m := mut.systemMessage(mail.BroadcastComplete, "", mail.SubjectBreakpointToolCall, body)
	for _, a := range mut.def.Agents {
		mut.appendHistoryMessage(a.Name, 0, m)
	}
	if mut.Task.isForeign() {
		mut.sendCallerFailure(mail.SubjectBreakpointToolCall, body, true)
	}
	mut.Task.State = StatePaused
	mut.stashRemaining()
	mut.answerPosts("task_complete", Answer{State: StatePaused, Subject: mail.SubjectBreakpointToolCall, Body: body, Caller: agent}, answersPaused)
}

// functionCall is one pending call in the form that the poster receives,
// https://platform.openai.com/docs/api-reference/responses (G-46).
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

func functionCalls(asks []BreakpointCall) []functionCall {
	list := make([]functionCall, len(asks))
	for i, a := range asks {
		list[i] = functionCall{
			Arguments: string(a.Args), CallID: a.ID, Name: a.Name, Type: "function_call", ID: "fc_" + a.ID, Status: "completed",
		}
	}
	return list
}

// Calls is the JSON list of all calls that wait for people, in the form that the poster
// receives.
func (t Task) Calls() string {
	raw, _ := json.Marshal(t.functionCalls()) // strings always encode
	return string(raw)
}

func (t Task) functionCalls() (list []functionCall) {
	for _, b := range t.Breakpoints {
		list = append(list, functionCalls(slices.DeleteFunc(slices.Clone(b.Calls), func(a BreakpointCall) bool { return a.Result != nil }))...)
	}
	for _, a := range t.PeerCalls {
		list = append(list, a.functionCall())
	}
	return list
}

func (mut *mutationBuilder) dropBreakpoint(row int64) {
	mut.Task.Breakpoints = slices.DeleteFunc(mut.Task.Breakpoints, func(b Breakpoint) bool { return b.Row == row })
}

// rebaseTurn gives up a suspended turn that cannot go on. Its agent begins a new turn
// with the answers in its history, as MAIL has it.
func (mut *mutationBuilder) rebaseTurn(t *Turn, b Breakpoint, why string) {
	name := t.agent.Name
	mut.appendHistoryMessage(name, t.row.N, t.row.Message)
	for _, a := range b.Calls {
		fault := a.Result.abiError(a.Op)
		text := a.Result.Text
		if fault != nil {
			text = "ERROR: " + fault.Message
		}
		mut.appendHistory(name, t.row.N, abi.HistoryEntry{Kind: abi.KindCall, Call: &abi.Call{ID: a.ID, Name: a.Name, Args: a.Args}})
		mut.appendHistory(name, t.row.N, abi.HistoryEntry{Kind: abi.KindResult, Result: &abi.Result{ID: a.ID, OK: fault == nil, Text: text}})
	}
	mut.logEvent("turn_rebased", "agent "+name+" begins anew: "+why, map[string]any{"caller": name, "turn": t.row.N})
	m := mut.systemMessage(mail.Broadcast, name, mail.SubjectActionCompleteBcast, "")
	mut.addRow(Row{Agent: name, Tier: mail.Tier(m), Message: m, Origin: Origin{Door: "system"}, Cause: t.id()})
}

// findRebase reports whether a failed turn was suspended and answered, and cannot go on
// because its module cannot run any more.
func (mut *mutationBuilder) findRebase(t *Turn, f Failure) (Breakpoint, bool) {
	b, ok := mut.Task.findBreakpoint(t.row.N)
	for _, a := range b.Calls {
		ok = ok && a.Result != nil
	}
	return b, ok && f.Cause == CauseModule
}

// cancelBreakpoints answers all pending calls of a reopened task with CANCELLED, and
// has later ones answered so.
func (mut *mutationBuilder) cancelBreakpoints() {
	for i := range mut.Task.Breakpoints {
		b := &mut.Task.Breakpoints[i]
		b.Cancelled, b.Calls = true, slices.Clone(b.Calls)
		for k := range b.Calls {
			if b.Calls[k].Result == nil {
				b.Calls[k].Result = &BreakpointResult{Code: abi.CodeCancelled, Reason: reasonCancelled, Message: textCancelled, Time: mut.now}
			}
		}
	}
}

// Reason and text of a call that the user did not answer, but posted.
const (
	reasonCancelled = "cancelled"
	textCancelled   = "the user has written instead of answering this call"
)

// CheckAnswerable returns CANCELLED when the turn's breakpoint calls get no answer any
// more, else nil.
func (t *Turn) CheckAnswerable(op abi.Op) *abi.Error {
	if b, _ := t.rec.findBreakpoint(t.row.N); !b.Cancelled {
		return nil
	}
	return abi.Errorf(abi.CodeCancelled, op, reasonCancelled, textCancelled)
}

package swarm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// Toolbook knows the MAIL tools' published parameter schemas.
type Toolbook interface {
	// Tools returns every MAIL tool with its description and schema.
	Tools() []abi.Tool
	// ToolArgs says what is wrong with a call's arguments.
	ToolArgs(tool string, args []byte) error
}

// Mail handles one call of op mail. A refusal changes nothing in the mail
// world but is kept in the agent's history.
func (t *Turn) Mail(req abi.MailRequest) (abi.MailResponse, *abi.Error) {
	if t.over != "" {
		return abi.MailResponse{}, abi.Errorf(abi.CodeConflict, abi.OpMail, "turn_over",
			"%s ended the mail calls of this turn", t.over)
	}
	if t.stagedN >= maxStaged {
		return abi.MailResponse{}, abi.Errorf(abi.CodeLimit, abi.OpMail, "staged",
			"a turn may make %d mail calls", maxStaged)
	}
	if len(req.Args) == 0 || string(req.Args) == "null" {
		req.Args = json.RawMessage("{}")
	}
	e := effect{at: t.clock.tick(), call: abi.Call{
		ID: fmt.Sprintf("t%d.%d", t.row.N, t.stagedN+1), Name: req.Tool, Args: req.Args,
	}}
	text, fault := t.decide(&e)
	return t.record(e, text, fault)
}

// decide does what a call asks, or what was done for it by an earlier attempt.
func (t *Turn) decide(e *effect) (string, *abi.Error) {
	if t.again == nil {
		return t.callTool(e)
	}
	past := t.again.Err
	if past != nil && past.Reason != reasonStagedBytes {
		if past.Code != abi.CodeLimit {
			t.lodge(e, past)
		}
		return "", past
	}
	text, fault := t.callTool(e)
	var rsp abi.MailResponse
	if past == nil && json.Unmarshal(t.again.Answer, &rsp) == nil {
		text = strings.TrimPrefix(rsp.Text, success)
	}
	return text, fault
}

// success begins the text of every call that was done, reasonStagedBytes is why
// one is refused that would have been done.
const (
	success           = "SUCCESS: "
	reasonStagedBytes = "staged_bytes"
)

// record stages an effect with its result. A refusal is kept as well, without
// arguments that are long: whoever is refused must not fill the log.
func (t *Turn) record(e effect, text string, fault *abi.Error) (abi.MailResponse, *abi.Error) {
	if fault != nil && len(e.call.Args) > maxRefusedArgs {
		e.call.Args = json.RawMessage(`{}`)
	}
	size := len(e.call.Args) + len(e.complaint)
	for _, l := range e.letters {
		size += len(l.Message.Payload.Body)
	}
	if e.message != nil {
		size += len(e.message.Payload.Body) * len(e.recipients)
	}
	if t.bytes+size > maxStagedBytes {
		return abi.MailResponse{}, abi.Errorf(abi.CodeLimit, abi.OpMail, reasonStagedBytes,
			"a turn may send %d bytes of mail", maxStagedBytes)
	}
	t.bytes += size
	t.stagedN++
	if fault != nil {
		e.result = abi.Result{ID: e.call.ID, Text: "ERROR: " + fault.Message}
		t.staged = append(t.staged, e)
		return abi.MailResponse{}, fault
	}
	e.result = abi.Result{ID: e.call.ID, OK: true, Text: success + text}
	t.staged = append(t.staged, e)
	t.over = e.ends
	rsp := abi.MailResponse{Text: e.result.Text, SentTo: e.sentTo}
	if len(e.letters) > 0 {
		rsp.ID = e.letters[0].ID
	}
	if e.message != nil {
		rsp.ID = e.message.ID
	}
	if e.completion != nil {
		rsp.ID = e.completion.ID
	}
	return rsp, nil
}

// callTool checks a call and fills the effect. It returns the result's text,
// or the refusal together with the complaint that goes to the agent's mail.
func (t *Turn) callTool(e *effect) (string, *abi.Error) {
	if !slices.Contains(mail.Tools(), e.call.Name) {
		return "", t.complain(e, abi.CodeNotFound, "tool", "there is no MAIL tool %.64q", e.call.Name)
	}
	if !t.granted(e.call.Name) {
		return "", t.complain(e, abi.CodeDenied, "tool", "agent %q is not given the tool %s: %s",
			t.agent.Name, e.call.Name, t.whyNot(e.call.Name))
	}
	args, err := t.rt.readArgs(e.call.Name, e.call.Args)
	if err != nil {
		return "", t.complain(e, abi.CodeInvalid, "args", "error in the arguments of %s: %v", e.call.Name, err)
	}
	switch e.call.Name {
	case mail.ToolSendRequest, mail.ToolSendResponse, mail.ToolSendInterrupt, mail.ToolSendBroadcast, mail.ToolSendInterswarmBroadcast:
		return t.send(e, args)
	case mail.ToolTaskComplete:
		return t.taskComplete(e, args)
	case mail.ToolAwaitMessage:
		return t.await(e, args)
	case mail.ToolAcknowledgeBroadcast:
		return t.acknowledge(e, args)
	case mail.ToolIgnoreBroadcast:
		return t.ignore(e, args)
	case mail.ToolDiscoverSwarms:
		return "", t.complain(e, abi.CodeUnsupported, "tool", "%s cannot be called here", e.call.Name)
	}
	return t.help(e, args)
}

// complain refuses a call and lets the agent find the reason in its mail as
// well (R-079 case 1).
func (t *Turn) complain(e *effect, code abi.Code, reason, format string, args ...any) *abi.Error {
	fault := abi.Errorf(code, abi.OpMail, reason, format, args...)
	t.lodge(e, fault)
	return fault
}

func (t *Turn) lodge(e *effect, fault *abi.Error) {
	e.complaintSubject, e.complaint = complaintSubject(fault.Reason), fault.Message
	e.event, e.description = "agent_error", "agent "+t.agent.Name+": "+fault.Message
	e.extra = map[string]any{"caller": t.agent.Name, "tool_name": e.call.Name}
}

// complaintSubject is the subject under which the reason of a refusal comes.
func complaintSubject(reason string) string {
	switch reason {
	case "comm_targets", "interswarm":
		return mail.SubjectInvalidRecipient
	case "user":
		return mail.SubjectImproperResponseToUser
	case "agent":
		return mail.SubjectAgentError
	case "router":
		return mail.SubjectRouterError
	}
	return mail.SubjectToolCallError
}

func (t *Turn) acknowledge(e *effect, args toolArgs) (string, *abi.Error) {
	if t.row.Message.Type != mail.Broadcast {
		return "", t.complain(e, abi.CodeInvalid, "not_a_broadcast",
			"improper use of acknowledge_broadcast: the message of this turn is a %s", t.row.Message.Type)
	}
	e.note = "broadcast acknowledged"
	if args.Note != nil && *args.Note != "" {
		e.note += ": " + *args.Note
	}
	return "broadcast acknowledged", nil
}

func (t *Turn) ignore(e *effect, args toolArgs) (string, *abi.Error) {
	if t.row.Message.Type != mail.Broadcast {
		return "", t.complain(e, abi.CodeInvalid, "not_a_broadcast",
			"improper use of ignore_broadcast: the message of this turn is a %s", t.row.Message.Type)
	}
	t.ignored = true
	e.event, e.description = "broadcast_ignored", "agent "+t.agent.Name+" called ignore_broadcast"
	e.extra = map[string]any{"caller": t.agent.Name}
	if args.Reason != nil {
		e.extra["reason"] = *args.Reason
	}
	return "broadcast ignored", nil
}

func (t *Turn) taskComplete(e *effect, args toolArgs) (string, *abi.Error) {
	body := "Task completed."
	if args.Finish != nil {
		body = *args.Finish
	}
	if fault := checkSize(body); fault != nil {
		return "", fault
	}
	e.ends = e.call.Name
	m := t.compose(mail.BroadcastComplete, "", []mail.Address{{Type: mail.Agent, Name: mail.ReservedAll}},
		mail.SubjectTaskComplete, body)
	e.completion = &m
	e.event = "task_complete_call"
	e.description = "agent " + t.agent.Name + " called task_complete, full response to follow"
	e.extra = map[string]any{"caller": t.agent.Name}
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	if t.task.rec.State != StateRunning {
		return "task already completed", nil
	}
	return "task completed", nil
}

func (t *Turn) compose(kind mail.Type, payloadID string, to []mail.Address, subject, body string) mail.Message {
	id := t.newID()
	if payloadID == "" {
		payloadID = t.newID()
	}
	return compose(kind, envelope{
		task: t.task.key.Task, swarm: t.def.Name, id: id, payloadID: payloadID, at: t.clock.Now(),
		sender: mail.Address{Type: mail.Agent, Name: t.agent.Name}, recipients: to, subject: subject, body: body,
	})
}

func checkSize(body string) *abi.Error {
	if len(body) > MaxBody {
		return abi.Errorf(abi.CodeLimit, abi.OpMail, "body", "body has %d bytes, at most %d", len(body), MaxBody)
	}
	return nil
}

// id is the printed form of a turn id.
func (t *Turn) id() string { return fmt.Sprintf("%s/%d", t.task.key.Task, t.row.N) }

func (t *Turn) granted(tool string) bool {
	return t.again != nil || slices.ContainsFunc(t.toolset().tools, func(x abi.Tool) bool { return x.Name == tool })
}

// whyNot names the line of the swarm's file that would give the agent a tool.
func (t *Turn) whyNot(tool string) string {
	a, table := t.agent, "[agents."+t.agent.Name+"]"
	abroad := tool == mail.ToolSendInterswarmBroadcast || tool == mail.ToolDiscoverSwarms
	switch {
	case slices.Contains(a.Exclude, tool):
		return table + " exclude_tools names it"
	case tool == mail.ToolTaskComplete:
		return "set " + table + " can_complete_tasks = true"
	case abroad && a.CanComplete && (!a.Interswarm || !t.def.Interswarm):
		return "set enable_interswarm = true in [swarm] and in " + table
	case tool == mail.ToolDiscoverSwarms && a.CanComplete:
		return "the task is not an admin's; set [swarm] allow_agent_discovery = true"
	case !abroad && len(a.Targets) == 0:
		return table + " comm_targets is empty"
	}
	return strings.TrimSpace("only supervisors have it; set " + table + " can_complete_tasks = true")
}

package swarm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// MailTools has the MAIL tools with their published parameter schemas.
type MailTools interface {
	// Tools returns every MAIL tool with its description and schema.
	Tools() []abi.Tool
	// ToolArgs checks a call's arguments against the tool's schema.
	ToolArgs(tool string, args []byte) error
}

// CallMailTool runs one call of op mail. A refusal changes nothing in the mail world
// but is kept in the agent's history.
func (t *Turn) CallMailTool(req abi.MailRequest) (abi.MailResponse, *abi.Error) {
	if len(req.Args) == 0 || string(req.Args) == "null" {
		req.Args = json.RawMessage("{}")
	}
	e := stagedCall{at: t.clock.advanceToHost(), call: abi.Call{
		ID: fmt.Sprintf("t%d.%d", t.row.N, t.stagedN+t.excess+1), Name: req.Tool, Args: req.Args,
	}}
	switch {
	case t.endedBy != "":
		return t.refuseExcess(e, abi.Errorf(abi.CodeConflict, abi.OpMail, "turn_over", "%s ended the mail calls of this turn", t.endedBy))
	case t.stagedN >= maxStaged:
		return t.refuseExcess(e, abi.Errorf(abi.CodeLimit, abi.OpMail, "staged", "a turn may make %d mail calls", maxStaged))
	}
	text, fault := t.runCall(&e)
	return t.recordCall(e, text, fault)
}

// refuseExcess refuses a call that the turn may not make any more. The first of them
// are kept in the history, without their arguments, so that they cannot fill it.
func (t *Turn) refuseExcess(e stagedCall, fault *abi.Error) (abi.MailResponse, *abi.Error) {
	if t.excess < maxExcess {
		t.excess++
		t.staged = append(t.staged, stagedCall{
			at: e.at, call: abi.Call{ID: e.call.ID, Name: truncateName(e.call.Name), Args: json.RawMessage("{}")},
			result: abi.Result{ID: e.call.ID, Text: "ERROR: " + fault.Message},
		})
	}
	return abi.MailResponse{}, fault
}

// truncateName returns at most the first maxToolName bytes of a tool's name.
func truncateName(name string) string {
	if len(name) <= maxToolName {
		return name
	}
	return name[:runeStart(name, maxToolName)] + "…"
}

// runCall runs a call, or repeats what an earlier attempt decided about it.
func (t *Turn) runCall(e *stagedCall) (string, *abi.Error) {
	if t.replay == nil {
		return t.callTool(e)
	}
	prior := t.replay.Err
	if prior != nil && prior.Reason != reasonStagedBytes {
		if prior.Code != abi.CodeLimit {
			t.addComplaint(e, prior)
		}
		return "", prior
	}
	text, fault := t.callTool(e)
	var rsp abi.MailResponse
	if prior == nil && json.Unmarshal(t.replay.Answer, &rsp) == nil {
		text = strings.TrimPrefix(rsp.Text, success)
	}
	return text, fault
}

// success prefixes the text of every successful call. reasonStagedBytes is the reason
// of a refusal that came after the call itself had succeeded.
const (
	success           = "SUCCESS: "
	reasonStagedBytes = "staged_bytes"
)

// recordCall stages a call with its result. A refused call is kept without long
// arguments, so that refused calls cannot fill the log.
func (t *Turn) recordCall(e stagedCall, text string, fault *abi.Error) (abi.MailResponse, *abi.Error) {
	if fault != nil && len(e.call.Args) > maxRefusedArgs {
		e.call.Args = json.RawMessage(`{}`)
	}
	size := len(e.call.Args) + len(e.complaint)
	for _, msg := range e.outbox {
		size += len(msg.Message.Payload.Body)
	}
	if e.message != nil {
		size += len(e.message.Payload.Body) * len(e.recipients)
	}
	if t.bytes+size > maxStagedBytes {
		return t.refuseExcess(e, abi.Errorf(abi.CodeLimit, abi.OpMail, reasonStagedBytes,
			"a turn may send %d bytes of mail", maxStagedBytes))
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
	t.endedBy = e.ends
	rsp := abi.MailResponse{Text: e.result.Text, SentTo: e.sentTo, RequestID: e.asked}
	if len(e.outbox) > 0 {
		rsp.ID = e.outbox[0].ID
	}
	if e.message != nil {
		rsp.ID = e.message.ID
	}
	if e.completion != nil {
		rsp.ID = e.completion.ID
	}
	return rsp, nil
}

// callTool checks and runs a call. It returns the result's text, or the refusal, whose
// complaint goes to the agent's mail.
func (t *Turn) callTool(e *stagedCall) (string, *abi.Error) {
	if !slices.Contains(mail.Tools(), e.call.Name) {
		return "", t.complain(e, abi.CodeNotFound, "tool", "there is no MAIL tool %.64q", e.call.Name)
	}
	if !t.hasTool(e.call.Name) {
		return "", t.complain(e, abi.CodeDenied, "tool", "agent %q is not given the tool %s: %s",
			t.agent.Name, e.call.Name, t.explainMissingTool(e.call.Name))
	}
	args, err := t.rt.readArgs(e.call.Name, e.call.Args)
	if err != nil {
		return "", t.complain(e, abi.CodeInvalid, "args", "error in the arguments of %s: %v", e.call.Name, err)
	}
	switch e.call.Name {
	case mail.ToolSendRequest, mail.ToolSendResponse, mail.ToolSendInterrupt, mail.ToolSendBroadcast, mail.ToolSendInterswarmBroadcast:
		return t.sendMail(e, args)
	case mail.ToolTaskComplete:
		return t.taskComplete(e, args)
	case mail.ToolAwaitMessage:
		return t.awaitMessage(e, args)
	case mail.ToolAcknowledgeBroadcast:
		return t.acknowledgeBroadcast(e, args)
	case mail.ToolIgnoreBroadcast:
		return t.ignoreBroadcast(e, args)
	case mail.ToolDiscoverSwarms:
		return "", t.complain(e, abi.CodeUnsupported, "tool", "%s cannot be called here", e.call.Name)
	}
	return t.writeHelp(e, args)
}

// complain refuses a call and sends the reason to the agent's mail as well (R-079 case
// 1).
func (t *Turn) complain(e *stagedCall, code abi.Code, reason, format string, args ...any) *abi.Error {
	fault := abi.Errorf(code, abi.OpMail, reason, format, args...)
	t.addComplaint(e, fault)
	return fault
}

func (t *Turn) addComplaint(e *stagedCall, fault *abi.Error) {
	e.complaintSubject, e.complaint = complaintSubject(fault.Reason), fault.Message
	e.event, e.description = "agent_error", "agent "+t.agent.Name+": "+fault.Message
	e.extra = map[string]any{"caller": t.agent.Name, "tool_name": e.call.Name}
}

// complaintSubject is the subject of the message with the reason of a refusal.
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

func (t *Turn) acknowledgeBroadcast(e *stagedCall, args toolArgs) (string, *abi.Error) {
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

func (t *Turn) ignoreBroadcast(e *stagedCall, args toolArgs) (string, *abi.Error) {
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

func (t *Turn) taskComplete(e *stagedCall, args toolArgs) (string, *abi.Error) {
	body := "Task completed."
	if args.Finish != nil {
		body = *args.Finish
	}
	if fault := checkSize(body); fault != nil {
		return "", fault
	}
	e.ends = e.call.Name
	m := t.newMessage(mail.BroadcastComplete, "", []mail.Address{{Type: mail.Agent, Name: mail.ReservedAll}},
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

func (t *Turn) newMessage(kind mail.Type, payloadID string, to []mail.Address, subject, body string) mail.Message {
	id := t.newID()
	if payloadID == "" {
		payloadID = t.newID()
	}
	return newMessage(kind, messageParts{
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

func (t *Turn) hasTool(tool string) bool {
	return t.replay != nil || slices.ContainsFunc(t.toolset().tools, func(x abi.Tool) bool { return x.Name == tool })
}

// explainMissingTool names the line of swarm.toml that would give the agent a tool.
func (t *Turn) explainMissingTool(tool string) string {
	a, table := t.agent, "[agents."+t.agent.Name+"]"
	forSwarms := tool == mail.ToolSendInterswarmBroadcast || tool == mail.ToolDiscoverSwarms
	switch {
	case slices.Contains(a.Exclude, tool):
		return table + " exclude_tools names it"
	case tool == mail.ToolTaskComplete:
		return "set " + table + " can_complete_tasks = true"
	case forSwarms && a.CanComplete && (!a.Interswarm || !t.def.Interswarm):
		return "set enable_interswarm = true in [swarm] and in " + table
	case tool == mail.ToolDiscoverSwarms && a.CanComplete:
		return "the task is not an admin's; set [swarm] allow_agent_discovery = true"
	case !forSwarms && len(a.Targets) == 0:
		return table + " comm_targets is empty"
	}
	return strings.TrimSpace("only supervisors have it; set " + table + " can_complete_tasks = true")
}

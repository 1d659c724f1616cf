package swarm

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"skep/abi"
	"skep/spec/mail"
)

// stagedCall is one staged mail call of a turn: the call, its result, and its effects
// on the commit.
type stagedCall struct {
	call   abi.Call
	result abi.Result
	at     time.Time
	// event is logged beside the tool_call event, if it has a name.
	event       string
	description string
	extra       map[string]any
	// message goes to each of the recipients.
	message    *mail.Message
	recipients []string
	// letters are messages to other swarms.
	outbox []OutboxMessage
	// sentTo are the addresses of an interswarm broadcast.
	sentTo []string
	// opens and closes change the list of open requests.
	opens []OpenRequest
	// asked is the request_id of a request, which its responses have, too.
	asked  string
	closes string
	// inExchange is set for the answer of an open exchange.
	inExchange bool
	// ends is the tool's name when the turn may make no mail call after it.
	ends string
	// completion is the message of task_complete.
	completion *mail.Message
	// complaint is a system response to the calling agent itself.
	complaintSubject, complaint string
	// note is kept in the agent's history.
	note string
	// silent means that the log has the call already.
	silent bool
	// action is the end of an action, nil for a mail call. ran means that its code ran.
	action *actionEnd
	ran    bool
}

// addStagedCalls adds a turn's staged calls to its commit.
func (mut *mutationBuilder) addStagedCalls(t *Turn) {
	for _, e := range t.staged {
		if e.ran {
			mut.logEvent("action_call", "agent "+t.agent.Name+" executing action tool: "+e.call.Name+" with args: "+string(shownArgs(e.call.Args)), map[string]any{
				"tool_name": e.call.Name, "tool_args": shownArgs(e.call.Args), "tool_call_id": e.call.ID, "caller": t.agent.Name,
			})
		}
		if !e.silent {
			mut.logEvent("tool_call", "agent "+t.agent.Name+" called "+e.call.Name, map[string]any{
				"tool_name": e.call.Name, "tool_args": shownArgs(e.call.Args), "tool_call_id": e.call.ID, "caller": t.agent.Name,
			})
		}
		call, result := e.call, e.result
		at := mail.FormatTime(e.at)
		mut.appendHistory(t.agent.Name, t.row.N, abi.HistoryEntry{Kind: abi.KindCall, Time: at, Call: &call})
		mut.appendHistory(t.agent.Name, t.row.N, abi.HistoryEntry{Kind: abi.KindResult, Time: at, Result: &result})
		if e.note != "" {
			mut.appendHistory(t.agent.Name, t.row.N, abi.HistoryEntry{Kind: abi.KindNote, Time: at, Note: e.note})
		}
		if e.event != "" && e.completion == nil {
			mut.logEvent(e.event, e.description, e.extra)
		}
		mut.addStagedMail(t, e)
	}
}

// shownArgs are a call's arguments as the log shows them: a long body is in the
// message's own event already.
func shownArgs(args json.RawMessage) json.RawMessage {
	if len(args) > maxShownArgs {
		return json.RawMessage(fmt.Sprintf(`{"omitted_bytes":%d}`, len(args)))
	}
	return args
}

func (mut *mutationBuilder) addStagedMail(t *Turn, e stagedCall) {
	cause := t.id()
	if e.message != nil {
		for _, to := range e.recipients {
			mut.insertRow(Row{
				Agent: to, Tier: mail.Tier(*e.message), Message: *e.message,
				Origin: Origin{Door: "agent"}, Hops: t.row.Hops, Trace: t.trace, Cause: cause,
			})
		}
	}
	opens, closes := slices.Clone(e.opens), e.closes
	for _, msg := range e.outbox {
		if mut.respondInExchange(t.agent.Name, msg) {
			closes = ""
			continue
		}
		if e.inExchange {
			mut.logEvent("interswarm_message_ignored", "agent "+t.agent.Name+" answers what was answered or withdrawn meanwhile", map[string]any{"swarm": msg.Peer})
			continue
		}
		msg.Answers = mut.Task.questionOf(t, msg.Peer)
		mut.addToOutbox(msg)
		for i := range opens {
			if msg.Answers != "" && opens[i].ID == msg.Message.Payload.ID {
				opens[i].Answers, opens[i].Cursor = msg.Answers, mut.Task.Cursor
			}
		}
	}
	if len(mut.Task.Requests)+len(opens) <= maxOpenRequests {
		mut.Task.Requests = append(mut.Task.Requests, opens...)
	}
	if closes != "" {
		mut.closeRequest(closes)
	}
	if e.complaint != "" {
		mut.sendSystem(mail.Response, t.agent.Name, e.complaintSubject, e.complaint, cause)
	}
	if e.completion != nil {
		mut.addCompletion(t, e)
	}
}

// addCompletion ends the task, unless it was ended while the turn ran.
func (mut *mutationBuilder) addCompletion(t *Turn, e stagedCall) {
	name := t.agent.Name
	if mut.Task.State != StateRunning {
		mut.logEvent("task_complete_call_duplicate", "agent "+name+" called task_complete on already completed task",
			map[string]any{"caller": name})
		return
	}
	mut.logEvent(e.event, e.description, e.extra)
	mut.completeTask(name, *e.completion)
}

// maxOpenRequests bounds the list in a task's record. Requests beyond it are answered
// like others, but their responses get a fresh id.
const maxOpenRequests = 256

// closeRequest closes a request that is no exchange: those are answered.
func (mut *mutationBuilder) closeRequest(id string) {
	i := slices.IndexFunc(mut.Task.Requests, func(r OpenRequest) bool { return r.ID == id && r.Exchange == nil })
	if i >= 0 {
		mut.Task.Requests = slices.Delete(mut.Task.Requests, i, i+1)
	}
}

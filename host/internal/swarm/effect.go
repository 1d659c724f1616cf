package swarm

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"skep/abi"
	"skep/spec/mail"
)

// effect is one staged mail call of a turn: what it said, what it was told,
// and what the commit must do for it.
type effect struct {
	call   abi.Call
	result abi.Result
	at     time.Time
	// event is logged beside the tool_call event, when it has a name.
	event       string
	description string
	extra       map[string]any
	// message goes to each of the recipients.
	message    *mail.Message
	recipients []string
	// letters go to other swarms.
	letters []Letter
	// sentTo are those that a circular reached.
	sentTo []string
	// opens and closes keep the list of open requests.
	opens  []OpenRequest
	closes string
	// ends is the tool's name when the turn may make no mail call after it.
	ends string
	// completion is the message of task_complete.
	completion *mail.Message
	// complaint is a system response to the calling agent itself.
	complaintSubject, complaint string
	// note is kept in the agent's history.
	note string
	// silent says that the log has the call already.
	silent bool
	// action is how an action ended, nil for a mail call. ran says that its code
	// ran.
	action *actionEnd
	ran    bool
}

// stage writes a turn's effects into its commit.
func (s *step) stage(t *Turn) {
	for _, e := range t.staged {
		if e.ran {
			s.event("action_call", "agent "+t.agent.Name+" executing action tool: "+e.call.Name+" with args: "+string(shown(e.call.Args)), map[string]any{
				"tool_name": e.call.Name, "tool_args": shown(e.call.Args), "tool_call_id": e.call.ID, "caller": t.agent.Name,
			})
		}
		if !e.silent {
			s.event("tool_call", "agent "+t.agent.Name+" called "+e.call.Name, map[string]any{
				"tool_name": e.call.Name, "tool_args": shown(e.call.Args), "tool_call_id": e.call.ID, "caller": t.agent.Name,
			})
		}
		call, result := e.call, e.result
		at := mail.FormatTime(e.at)
		s.remember(t.agent.Name, t.row.N, abi.HistoryEntry{Kind: abi.KindCall, Time: at, Call: &call})
		s.remember(t.agent.Name, t.row.N, abi.HistoryEntry{Kind: abi.KindResult, Time: at, Result: &result})
		if e.note != "" {
			s.remember(t.agent.Name, t.row.N, abi.HistoryEntry{Kind: abi.KindNote, Time: at, Note: e.note})
		}
		if e.event != "" && e.completion == nil {
			s.event(e.event, e.description, e.extra)
		}
		s.stageMail(t, e)
	}
}

// shown is what the log shows of a call's arguments: a body that is long
// stands in the message's own event already.
func shown(args json.RawMessage) json.RawMessage {
	if len(args) > maxShownArgs {
		return json.RawMessage(fmt.Sprintf(`{"omitted_bytes":%d}`, len(args)))
	}
	return args
}

func (s *step) stageMail(t *Turn, e effect) {
	cause := t.id()
	if e.message != nil {
		for _, to := range e.recipients {
			s.insert(Row{
				Agent: to, Tier: mail.Tier(*e.message), Message: *e.message,
				Origin: Origin{Door: "agent"}, Hops: t.row.Hops, Trace: t.row.Trace, Cause: cause,
			})
		}
	}
	for _, l := range e.letters {
		s.post(l)
	}
	if len(s.Task.Requests)+len(e.opens) <= maxOpenRequests {
		s.Task.Requests = append(s.Task.Requests, e.opens...)
	}
	if e.closes != "" {
		s.closeRequest(e.closes)
	}
	if e.complaint != "" {
		s.sendSystem(mail.Response, t.agent.Name, e.complaintSubject, e.complaint, cause)
	}
	if e.completion != nil {
		s.stageCompletion(t, e)
	}
}

// stageCompletion ends the task, unless somebody else has ended it while the
// turn ran.
func (s *step) stageCompletion(t *Turn, e effect) {
	name := t.agent.Name
	if s.Task.State != StateRunning {
		s.event("task_complete_call_duplicate", "agent "+name+" called task_complete on already completed task",
			map[string]any{"caller": name})
		return
	}
	s.event(e.event, e.description, e.extra)
	s.complete(name, *e.completion)
}

// maxOpenRequests bounds the list in a task's record; requests beyond it are
// answered like any other, only their responses get a fresh id.
const maxOpenRequests = 256

func (s *step) closeRequest(id string) {
	i := slices.IndexFunc(s.Task.Requests, func(r OpenRequest) bool { return r.ID == id })
	if i >= 0 {
		s.Task.Requests = slices.Delete(s.Task.Requests, i, i+1)
	}
}

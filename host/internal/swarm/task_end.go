package swarm

import (
	"errors"
	"fmt"
	"time"

	"skep/spec/mail"
)

// errTaskEnded is the cause that stops the turns of an ended task.
var errTaskEnded = errors.New("the task ended under the turn")

// errRowVoid is the cause that stops a turn whose message was withdrawn.
var errRowVoid = errors.New("the message was withdrawn under the turn")

// Answer is the answer to a post: the first completion logged after its message was
// handled, or the end of the task.
type Answer struct {
	State   State
	Subject string
	Body    string
	// Caller is the completing agent, empty for the system.
	Caller string
	// Cursor is the event that carries it, At its time.
	Cursor int64
	At     time.Time
	// Metered means that the task has called models, see [Runtime.ModelUse].
	Metered bool
}

// endBySystem ends a running task with a system completion (R-079 case 3), which
// answers every post.
func (mut *mutationBuilder) endBySystem(state State, subject, body string) {
	m := mut.systemMessage(mail.BroadcastComplete, "", subject, body)
	for _, a := range mut.def.Agents {
		mut.appendHistoryMessage(a.Name, 0, m)
	}
	name := "task_complete"
	if state == StateTimedOut {
		name = "task_error"
	}
	mut.notifyPeersOfEnd(taskEnd{subject: subject, body: body})
	mut.Task.State, mut.Task.Grace = state, false
	mut.stashRemaining()
	mut.kill = true
	mut.answerPosts(name, Answer{State: state, Subject: subject, Body: body}, answersAll)
	mut.Task.Requests, mut.Task.PeerCalls, mut.Task.RemoteAnswers = nil, nil, nil
}

// completeTask ends a running task with an agent's completion. A user's message that
// still waits keeps the task running: the completion then answers only the posts whose
// message was handled.
func (mut *mutationBuilder) completeTask(agent string, m mail.Message) {
	mut.logMessage(m, map[string]any{"caller": agent, "completion": true})
	for _, a := range mut.def.Agents {
		mut.appendHistoryMessage(a.Name, 0, m)
	}
	body := m.Payload.Body
	if mut.hasUnhandledPost() { // or other agents must still answer a post
		mut.Task.Requests, mut.Task.Grace = mut.Task.postRequests(), false
		mut.continueTask()
	} else {
		by := agent
		if isRemote(agent) {
			by = mut.Task.Entrypoint // an agent of another swarm does not speak for this one
		}
		mut.notifyPeersOfEnd(taskEnd{by: by, subject: mail.SubjectTaskComplete, body: body})
		mut.Task.State, mut.Task.Grace, mut.Task.RemoteAnswers = StateCompleted, false, nil
		mut.stashRemaining()
	}
	mut.answerPosts("task_complete", Answer{
		State: mut.Task.State, Subject: mail.SubjectTaskComplete, Body: body, Caller: agent,
	}, answersHandled)
	if mut.ended {
		mut.Task.Requests = nil
	}
}

// endBriefTask completes a task that owes and asks nothing any more.
func (mut *mutationBuilder) endBriefTask() {
	body := "The task has answered what it was asked."
	mut.notifyPeersOfEnd(taskEnd{by: mut.Task.Entrypoint, subject: mail.SubjectTaskComplete, body: body, endedBy: mut.Task.Caller})
	mut.Task.State, mut.Task.Requests, mut.Task.RemoteAnswers = StateCompleted, nil, nil
	mut.stashRemaining()
	mut.answerPosts("task_complete", Answer{State: StateCompleted, Subject: mail.SubjectTaskComplete, Body: body}, answersNone)
}

// continueTask lets a completed task run on with its stash, for a post that was not
// handled yet.
func (mut *mutationBuilder) continueTask() {
	mut.restoreStash()
	for i := range mut.Insert {
		if mut.Insert[i].Stash {
			mut.Insert[i].Stash = false
			mut.progressing++
		}
	}
}

// restoreStash puts the stash back into the queue and restarts the count of steps. An
// unread limit message is void: it was about the run that ends here.
func (mut *mutationBuilder) restoreStash() {
	mut.Task.Steps, mut.Task.Grace = 0, false
	mut.Unstash, mut.Stash = true, false
	mut.progressing += len(mut.active.stash)
	mut.voidLimitMessages(mut.active.stash)
	for _, q := range mut.active.queue {
		mut.voidLimitMessages(*q)
	}
}

func (mut *mutationBuilder) voidLimitMessages(rows []Row) {
	for i := range rows { // by index: a row is large, and there may be thousands
		if isLimitMessage(&rows[i]) && !rows[i].Suspended {
			mut.voidRow(rows[i])
			mut.progressing--
		}
	}
}

func isLimitMessage(row *Row) bool {
	return row.Message.Payload.Subject == mail.SubjectMaximumStepsReached
}

// stashRemaining takes all rows out of the queue, the inserted ones of this mutation
// included.
func (mut *mutationBuilder) stashRemaining() {
	mut.Stash, mut.Unstash, mut.ended = true, false, true
	for i := range mut.Insert {
		mut.Insert[i].Stash = true
	}
}

// answerPosts logs the event that carries an answer and gives the answer to its posts.
func (mut *mutationBuilder) answerPosts(event string, a Answer, which answerScope) {
	extra := map[string]any{"response": a.Body, "subject": a.Subject, "state": a.State}
	if a.Caller != "" {
		extra["caller"] = a.Caller
	}
	a.Cursor, a.At = mut.logEvent(event, "", extra), mut.now.Round(0).UTC() // as the log has it
	mut.Task.Finish = Finish{a.Cursor, a.Subject}
	for _, p := range mut.selectAnsweredPosts(which) {
		mut.resolvePost(p, a)
		if p.Held {
			mut.closeExchange(p, a)
		}
	}
}

// reopenTask makes an ended task run again with its stash, for a new post.
func (mut *mutationBuilder) reopenTask(caller Trace) {
	mut.Task.Trace = mut.active.traces.begin(mut.Task, caller, mut.now)
	mut.Task.Definition = mut.def.Digest
	mut.Task.State = StateRunning
	mut.cancelBreakpoints()
	mut.sendPeerResults(Results{}, func(string) bool { return true })
	mut.restoreStash()
}

func (mut *mutationBuilder) graceText() string {
	return fmt.Sprintf("the task reached its limit of %d messages and the entrypoint %q did not complete it in the turn it had left; raise [limits] task_messages or send max_steps",
		mut.Task.MaxSteps, mut.Task.Entrypoint)
}

package swarm

import (
	"errors"
	"fmt"

	"skep/spec/mail"
)

// errTaskEnded is the cause with which the turns of an ended task are stopped.
var errTaskEnded = errors.New("the task ended under the turn")

// Answer is what a post comes back with: the first completion logged after its
// message was handled, or the end of the task.
type Answer struct {
	State   State
	Subject string
	Body    string
	// Caller is the completing agent, empty for the system.
	Caller string
	// Cursor is the event that carries it.
	Cursor int64
}

// endBySystem ends a running task with a system completion (R-079 case 3). It
// answers every post.
func (s *step) endBySystem(state State, subject, body string) {
	m := s.systemMessage(mail.BroadcastComplete, "", subject, body)
	for _, a := range s.def.Agents {
		s.rememberMessage(a.Name, 0, m)
	}
	name := "task_complete"
	if state == StateTimedOut {
		name = "task_error"
	}
	s.announce(ending{subject: subject, body: body})
	s.Task.State, s.Task.Grace = state, false
	s.Task.Requests, s.Task.PeerAsks, s.Task.Gathered = nil, nil, nil
	s.stashRest()
	s.kill = true
	s.answer(name, Answer{State: state, Subject: subject, Body: body}, answersAll)
}

// complete ends a running task with an agent's completion. A user's message
// that still waits keeps the task running: the completion answers only the
// posts whose message was handled.
func (s *step) complete(agent string, m mail.Message) {
	s.newMessage(m, map[string]any{"caller": agent, "completion": true})
	for _, a := range s.def.Agents {
		s.rememberMessage(a.Name, 0, m)
	}
	body := m.Payload.Body
	if s.userLeft() { // or others are still to answer a post
		s.Task.Requests, s.Task.Grace = s.Task.errands(), false
		s.goOn()
	} else {
		by := agent
		if abroad(agent) {
			by = s.Task.Entrypoint // no other swarm's agent speaks for this one
		}
		s.announce(ending{by: by, subject: mail.SubjectTaskComplete, body: body})
		s.Task.State, s.Task.Requests, s.Task.Grace, s.Task.Gathered = StateCompleted, nil, false, nil
		s.stashRest()
	}
	s.answer("task_complete", Answer{
		State: s.Task.State, Subject: mail.SubjectTaskComplete, Body: body, Caller: agent,
	}, answersHandled)
}

// goOn makes a completed task run on for a post that nobody has handled yet,
// with all that was stashed.
func (s *step) goOn() {
	s.restore()
	for i := range s.Insert {
		if s.Insert[i].Stash {
			s.Insert[i].Stash = false
			s.left++
		}
	}
}

// restore puts the stash back into the queue and starts the count anew (contract
// 5.3). A request to finish that nobody has read is void: it was made for what
// ends here.
func (s *step) restore() {
	s.Task.Steps, s.Task.Grace = 0, false
	s.Unstash, s.Stash = true, false
	s.left += len(s.live.stash)
	s.voidRequests(s.live.stash)
	for _, q := range s.live.queue {
		s.voidRequests(*q)
	}
}

func (s *step) voidRequests(rows []Row) {
	for i := range rows { // a row is large, and there may be thousands
		if voidAfter(&rows[i]) && !rows[i].Suspended {
			s.void(rows[i])
			s.left--
		}
	}
}

func voidAfter(row *Row) bool {
	return row.Message.Payload.Subject == mail.SubjectMaximumStepsReached
}

// stashRest takes every row that is left out of the queue, also those this
// step has inserted.
func (s *step) stashRest() {
	s.Stash, s.Unstash, s.ended = true, false, true
	for i := range s.Insert {
		s.Insert[i].Stash = true
	}
}

// answer logs the event that carries an answer and gives it to the posts it
// is for.
func (s *step) answer(event string, a Answer, which answering) {
	extra := map[string]any{"response": a.Body, "subject": a.Subject, "state": a.State}
	if a.Caller != "" {
		extra["caller"] = a.Caller
	}
	a.Cursor = s.event(event, "", extra)
	s.Task.Finish = Finish{a.Cursor, a.Subject}
	if s.resolved == nil {
		s.resolved = map[int64]Answer{}
	}
	for _, p := range s.answerPosts(which) {
		if p.Key != "" {
			s.Answers = append(s.Answers, Answered{p.Door, p.Key, a.Cursor})
		}
		s.resolved[p.Row] = a
	}
}

// reopen makes an ended task run again with its stash, for a new post.
func (s *step) reopen() {
	s.Task.Definition = s.def.Digest
	s.Task.State = StateRunning
	s.cancelAsks()
	s.answerPeers(Results{}, func(string) bool { return true })
	s.restore()
}

func (s *step) graceText() string {
	return fmt.Sprintf("the task reached its limit of %d messages and the entrypoint %q did not complete it in the turn it had left; raise [limits] task_messages or send max_steps",
		s.Task.MaxSteps, s.Task.Entrypoint)
}

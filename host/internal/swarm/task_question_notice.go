package swarm

import (
	"encoding/json"
	"slices"

	"skep/spec/mail"
)

// QuestionsPeer is the peer of outbox messages about calls that wait for people. No swarm has such a
// name, and no agent can write to it.
const QuestionsPeer = "::questions"

// subjectQuestions is the subject of outbox messages for [QuestionsPeer].
const subjectQuestions = "::questions_wait::"

// QuestionNotice is the body of an outbox message for [QuestionsPeer]: calls of one commit that wait
// for people, without what they ask.
type QuestionNotice struct {
	Agent string         `json:"agent"`
	Calls []QuestionName `json:"calls"`
}

// QuestionName names a call that waits for a person.
type QuestionName struct {
	Call   string `json:"call_id"`
	Action string `json:"action"`
}

// isQuestionNotice reports whether a message is for [QuestionsPeer]. Nothing in its task waits for
// its delivery.
func (msg OutboxMessage) isQuestionNotice() bool { return msg.Peer == QuestionsPeer }

// addQuestionNotice puts a message about calls of a paused task into the outbox, if a person of this
// host answers them.
func (mut *mutationBuilder) addQuestionNotice(agent string, calls []functionCall) {
	if !mut.active.questionNotices || mut.Task.answeredAt() != "" {
		return
	}
	notice := QuestionNotice{Agent: agent}
	for _, c := range calls {
		notice.Calls = append(notice.Calls, QuestionName{c.CallID, c.Name})
	}
	raw, _ := json.Marshal(notice) // texts always encode
	m := mut.systemMessage(mail.Response, "people", subjectQuestions, string(raw))
	mut.Task.OutboxMessages++
	mut.Outbox = append(mut.Outbox, OutboxMessage{
		N: mut.Task.OutboxMessages, ID: m.ID, Peer: QuestionsPeer, Message: m, Notice: true, Since: mut.now,
	})
}

// isResolved reports whether none of the calls of a notice waits any more.
func (t Task) isResolved(msg OutboxMessage) bool {
	var notice QuestionNotice
	if !msg.isQuestionNotice() || json.Unmarshal([]byte(msg.Message.Payload.Body), &notice) != nil {
		return false
	}
	open := t.questionShapes()
	return !slices.ContainsFunc(notice.Calls, func(c QuestionName) bool {
		return slices.ContainsFunc(open, func(q QuestionShape) bool { return q.Call == c.Call })
	})
}

// withdrawResolved takes messages about questions out of the outbox whose calls wait no more.
func (mut *mutationBuilder) withdrawResolved() {
	for _, msg := range mut.active.outbox {
		if mut.Task.isResolved(msg) && !slices.Contains(mut.Delivered, msg.N) {
			mut.Delivered = append(mut.Delivered, msg.N)
		}
	}
}

// countUndelivered counts the outbox messages whose delivery the task waits for.
func (t *activeTask) countUndelivered() (n int) {
	for i := range t.outbox {
		if !t.outbox[i].isQuestionNotice() {
			n++
		}
	}
	return n
}

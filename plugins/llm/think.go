package main

import (
	"fmt"
	"slices"
	"strings"

	skep "skep/sdk/go"
)

// done is what a turn has done so far.
type done struct {
	// mail counts the MAIL calls that the host took, notes what the agent has
	// noted.
	mail, notes int
	// refused is the last call that failed, and why; empty for none.
	refused string
}

const subjectLimit = "::maximum_steps_reached::"

// think asks the model and does what it says until the turn is done: until an
// answer asks for mail only, or ends the turn.
func (m *mind) think() error {
	if err := m.compact(m.params.MaxHistoryTokens); err != nil {
		return err
	}
	m.begin()
	corrected := 0
	for round := 1; ; round++ {
		final := round == m.params.MaxRounds
		if final && round > 1 {
			m.talk.hear(notice(m.turn, "::maximum_rounds_reached::", lastRound))
		}
		rsp, err := m.question(final)
		if err != nil {
			return err
		}
		if len(rsp.ToolCalls) == 0 {
			if !final && corrected < m.params.Corrections {
				corrected++
				m.correct(rsp)
				continue
			}
			return m.textOnly(rsp)
		}
		next, err := m.act(m.answered(rsp))
		switch {
		case err != nil || next == turnEnds:
			return err
		case final:
			return m.outOfRounds(rsp)
		}
		m.trim(m.params.MaxHistoryTokens)
	}
}

// answered adds an answer with calls to the conversation, and returns its calls. Those
// of which two have one id, or one has none, get ids of their own: results could not
// be told apart. What is no name or no JSON is not shown again: there are providers
// that refuse a whole conversation for it.
func (m *mind) answered(rsp skep.ChatResponse) []skep.ChatCall {
	calls := slices.Clone(rsp.ToolCalls)
	shown := make([]skep.ChatCall, len(calls))
	seen := map[string]bool{"": true}
	for i := range calls {
		c := &calls[i]
		if seen[c.ID] {
			c.ID = fmt.Sprintf("call_%d_%d", len(m.talk), i)
		}
		seen[c.ID] = true
		shown[i] = skep.ChatCall{ID: c.ID, Name: word(c.Name), Arguments: object(c.Arguments)}
	}
	m.talk = append(m.talk, skep.ChatMessage{Role: skep.RoleAssistant, Content: rsp.Text, ToolCalls: shown, Carry: rsp.Carry})
	if strings.TrimSpace(rsp.Text) != "" {
		m.note("said: " + rsp.Text)
	}
	return calls
}

// correct tells a model that called nothing to do so.
func (m *mind) correct(rsp skep.ChatResponse) {
	if rsp.Text != "" {
		m.talk = append(m.talk, skep.ChatMessage{Role: skep.RoleAssistant, Content: rsp.Text, Carry: rsp.Carry})
	}
	words := noCall
	if rsp.Finish == skep.FinishLength {
		words = cutOff
	}
	m.talk.hear(notice(m.turn, "::tool_call_error::", fmt.Sprintf(words, m.kit.list())))
}

// choice is the tool the model has to call.
func (m *mind) choice(final bool) string {
	switch {
	case (final || m.limited()) && m.finisher() != "":
		return m.finisher()
	case m.params.RequireTool && len(m.kit.tools) > 0:
		return "required"
	}
	return ""
}

// limited reports whether the host wants the task to end with this turn.
func (m *mind) limited() bool {
	return m.turn.Message.FromSystem() && m.turn.Message.Subject == subjectLimit
}

// finisher is the tool that ends what the message began, empty where there is none.
func (m *mind) finisher() string {
	switch {
	case asks(&m.turn.Message) && m.kit.has("send_response"):
		return "send_response"
	case m.kit.has("task_complete"):
		return "task_complete"
	}
	return ""
}

// asks reports whether an agent waits for an answer to a message.
func asks(m *skep.Message) bool {
	return m.Sender.Type == skep.AddressAgent && (m.Type == skep.TypeRequest || m.Type == skep.TypeInterrupt)
}

// maxNotes and maxNote bound what a turn adds to the history on its own.
const (
	maxNotes = 60
	maxNote  = 2 << 10
)

// note keeps what the history would not have.
func (m *mind) note(s string) {
	if m.done.notes++; m.done.notes <= maxNotes {
		m.turn.Note(cut(s, maxNote))
	}
}

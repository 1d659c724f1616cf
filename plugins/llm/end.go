package main

import (
	"errors"
	"slices"
	"strings"

	skep "skep/sdk/go"
)

// textOnly ends a turn whose model has only written: the text goes to the asker. With
// require_tool it is dropped, and the turn fails.
func (m *mind) textOnly(rsp skep.ChatResponse) error {
	said := strings.TrimSpace(rsp.Text)
	msg := &m.turn.Message
	switch {
	case rsp.Finish == skep.FinishFiltered:
		return skep.Errorf(skep.Upstream, "model %q held its answer back", m.params.Model)
	case said == "" || m.params.RequireTool:
		return m.nothing("called no tool")
	case msg.Type == skep.TypeBroadcast && !msg.FromSystem() && m.kit.has("acknowledge_broadcast"):
		return m.turn.AcknowledgeBroadcast(cut(said, maxNote))
	case asks(msg) && m.kit.has("send_response"):
		return m.turn.SendResponse(msg.Sender.Name, re(msg.Subject), said)
	case (msg.FromUser() || m.limited()) && m.kit.has("task_complete"):
		return m.turn.TaskComplete(said)
	}
	return m.inBetween(said)
}

// inBetween ends a turn on what is no question with a text: while something can
// still come the text was said too early, and is kept as a note. Else it is the
// answer to the one who asked before.
func (m *mind) inBetween(said string) error {
	err := m.turn.AwaitMessage("")
	switch {
	case err == nil:
		m.note("said: " + said)
		return nil
	case !errors.Is(err, skep.Conflict):
		return err
	}
	if owed := m.owed(); owed != nil && m.kit.has("send_response") {
		return m.turn.SendResponse(owed.Sender.Name, re(owed.Subject), said)
	}
	if m.kit.has("task_complete") {
		return m.turn.TaskComplete(said)
	}
	return m.nothing("called no tool, and nobody waits for its text")
}

// owed is the last request of an agent that was not answered, nil when there is
// none in what the agent has in mind.
func (m *mind) owed() *skep.Message {
	var open []*skep.Message
	for _, e := range m.past {
		switch {
		case e.Message != nil && asks(e.Message):
			open = append(open, e.Message)
		case e.Call != nil && e.Call.Name == "send_response":
			to := targetOf(e.Call.Args)
			open = slices.DeleteFunc(open, func(r *skep.Message) bool { return r.Sender.Name == to })
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[len(open)-1]
}

// outOfRounds ends a turn whose model wanted to go on.
func (m *mind) outOfRounds(rsp skep.ChatResponse) error {
	if m.done.mail > 0 {
		m.turn.LogAt(skep.LevelWarn, "the turn ends at params.max_rounds, with what was sent", "max_rounds", m.params.MaxRounds)
		return nil
	}
	if strings.TrimSpace(rsp.Text) != "" && !m.params.RequireTool {
		return m.textOnly(rsp)
	}
	return m.nothing("wanted to go on")
}

// nothing is the end of a turn that has come to nothing. The text reaches who sent
// the message.
func (m *mind) nothing(why string) error {
	refused := ""
	if m.done.refused != "" {
		refused = "; its last call that failed was " + m.done.refused
	}
	return skep.Errorf(skep.Upstream, "model %q %s after the questions that [agents.%s] params allow (max_rounds = %d, corrections = %d)%s",
		m.params.Model, why, m.turn.Agent.Name, m.params.MaxRounds, m.params.Corrections, refused)
}

func re(subject string) string {
	if strings.HasPrefix(strings.ToLower(subject), "re:") {
		return subject
	}
	return "Re: " + subject
}

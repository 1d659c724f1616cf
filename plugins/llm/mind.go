package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	skep "skep/sdk/go"
)

// mind is the agent during one turn.
type mind struct {
	turn *skep.Turn
	// started is the turn's clock where it began.
	started time.Time

	params *params
	kit    *kit
	memory memory
	// past are the entries of the history that the model is shown.
	past []skep.Entry
	// talk is the conversation; what is behind fresh is of this turn.
	talk  talk
	fresh int
	show  show
	// done is what the turn has done so far.
	done done
}

// begin makes the conversation as it stands before the first question.
func (m *mind) begin() {
	m.talk = talk{{Role: skep.RoleSystem, Content: system(m.turn, m.params, m.kit)}}
	if m.memory.First != "" {
		m.talk.hear(m.memory.First)
	}
	if n := m.memory.Lost; n > 0 {
		m.talk.hear(element("note", fmt.Sprintf("%d records of earlier turns are left out here", n)))
	}
	if m.memory.Summary != "" {
		m.talk.hear(element("summary", m.memory.Summary))
	}
	m.talk.tell(m.past, m.params.Times)
	m.talk.hear(frame(&m.turn.Message, m.params.Times))
	m.fresh = len(m.talk)
}

// ask asks a model, again where that helps.
func (m *mind) ask(req skep.ChatRequest, show func(skep.ChatPiece) error) (skep.ChatResponse, error) {
	for tries := 1; ; tries++ {
		rsp, err := m.turn.ChatStream(req, show)
		if err == nil {
			return rsp, nil
		}
		wait, ok := m.patience(err, tries)
		if !ok || tries == maxTries {
			return rsp, unanswered(req.Model, err)
		}
		m.turn.LogAt(skep.LevelWarn, "asking the model again", "model", req.Model, "error", err, "wait", wait)
		m.turn.Sleep(wait)
	}
}

// unanswered puts the model in front of a refusal. Its code comes once, in front of
// all.
func unanswered(model string, err error) error {
	var e *skep.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("model %q gave no answer: %w", model, err)
	}
	out := *e
	out.Message = fmt.Sprintf("model %q gave no answer: %s", model, strings.TrimPrefix(e.Message, "models."+model+": "))
	return &out
}

const (
	maxTries = 4
	// pause is the first one where no Retry-After is given; it doubles.
	pause = 2 * time.Second
	// margin is what a turn needs behind the model's answer.
	margin = 10 * time.Second
)

// Why a model gave no answer, as far as asking again may help.
const (
	reasonLost      = "stream_lost" // the host stopped while the answer came
	reasonMalformed = "malformed"
	reasonTooLong   = "too_long"
)

// passing are the reasons that pass by themselves.
var passing = []string{"rate_limited", "overloaded", "unavailable"}

// patience is how long to wait before the same question may be answered, and
// whether that is worth it and the turn has the time.
func (m *mind) patience(err error, tries int) (time.Duration, bool) {
	var e *skep.Error
	if !errors.As(err, &e) {
		return 0, false
	}
	wait := e.RetryAfter
	switch {
	case e.Reason == reasonLost, e.Reason == reasonMalformed && tries == 1:
		return 0, true
	case e.Code != skep.Unavailable && e.Code != skep.Limit:
		return 0, false
	case wait == 0 && slices.Contains(passing, e.Reason):
		wait = pause << (tries - 1)
	}
	end := m.started.Add(m.turn.Deadline)
	return wait, wait > 0 && (m.turn.Deadline == 0 || m.turn.Now().Add(wait+margin).Before(end))
}

// over ends the turn. One that is called off has ended well: what it has sent counts,
// and the next message is on its way.
func (m *mind) over(err error) error {
	if calledOff(err) {
		return nil
	}
	return err
}

func calledOff(err error) bool { return errors.Is(err, skep.Cancelled) }

// question asks the model for its next step.
func (m *mind) question(final bool) (skep.ChatResponse, error) {
	req := skep.ChatRequest{
		Model: m.params.Model, Tools: m.kit.tools, MaxTokens: m.params.MaxTokens, Temperature: m.params.Temperature,
		ToolChoice: m.choice(final),
	}
	for budget := m.params.MaxHistoryTokens; ; budget /= 2 {
		req.Messages = m.talk
		rsp, err := m.ask(req, m.show.piece)
		m.show.end()
		if err == nil || !tooLong(err) || !m.squeeze(budget/2) {
			return rsp, err
		}
	}
}

// tooLong reports whether a model cannot take the question as it is.
func tooLong(err error) bool {
	var e *skep.Error
	return errors.As(err, &e) && e.Code == skep.Limit && e.Reason == reasonTooLong
}

// squeeze makes the conversation shorter, and reports whether it could.
func (m *mind) squeeze(budget int) bool {
	if m.trim(budget) {
		return true
	}
	was := len(m.past)
	if m.compact(budget) != nil || len(m.past) == was {
		return false
	}
	turn := m.talk[m.fresh:]
	m.begin()
	m.talk = append(m.talk, turn...)
	return true
}

// leftOut stands where a result was.
const leftOut = "[this result is left out here: the conversation has grown too long]"

// trim leaves out the oldest results of this turn until those that stay fit, and
// reports whether it left one out. The newest stays: the model has not read it yet.
func (m *mind) trim(budget int) bool {
	trimmed, newest := false, true
	for i := len(m.talk) - 1; i >= m.fresh; i-- {
		said := &m.talk[i]
		if said.Role != skep.RoleTool {
			newest = false
			continue
		}
		budget -= tokens(len(said.Content))
		if budget < 0 && !newest && len(said.Content) > len(leftOut) {
			said.Content, trimmed = leftOut, true
		}
	}
	return trimmed
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// model plays a model: it gives its answers in order, each a skep.ChatResponse or
// an error, and keeps the questions.
type model struct {
	t       *testing.T
	answers []any
	asked   []skep.ChatRequest
}

func (m *model) chat(r skep.ChatRequest) (skep.ChatResponse, error) {
	raw, err := json.Marshal(r) // the conversation goes on in the same array
	if err != nil {
		m.t.Fatal(err)
	}
	var kept skep.ChatRequest
	if err := json.Unmarshal(raw, &kept); err != nil {
		m.t.Fatal(err)
	}
	m.asked = append(m.asked, kept)
	if len(m.asked) > len(m.answers) {
		m.t.Errorf("question %d was not expected; its end is %q", len(m.asked), last(kept).Content)
		return skep.ChatResponse{}, skep.Errorf(skep.Upstream, "no more answers")
	}
	switch a := m.answers[len(m.asked)-1].(type) {
	case error:
		return skep.ChatResponse{}, a
	case skep.ChatResponse:
		return a, nil
	}
	return skep.ChatResponse{}, errors.New("no answer")
}

func last(r skep.ChatRequest) skep.ChatMessage { return r.Messages[len(r.Messages)-1] }

// say answers with text, call with calls: names and arguments in turn.
func say(text string) skep.ChatResponse {
	return skep.ChatResponse{Text: text, Finish: skep.FinishStop}
}

func call(namesAndArgs ...string) skep.ChatResponse {
	rsp := skep.ChatResponse{Finish: skep.FinishToolCalls}
	for i := 0; i < len(namesAndArgs); i += 2 {
		rsp.ToolCalls = append(rsp.ToolCalls, skep.ChatCall{
			ID: fmt.Sprintf("c%d", i/2), Name: namesAndArgs[i], Arguments: namesAndArgs[i+1],
		})
	}
	return rsp
}

func finish(text string) skep.ChatResponse {
	return call("task_complete", fmt.Sprintf(`{"finish_message":%q}`, text))
}

// play runs one turn of a supervisor with the answers given, all of which must be
// asked for.
func play(t *testing.T, in skeptest.Input, answers ...any) (skeptest.Outcome, []skep.ChatRequest) {
	t.Helper()
	m := &model{t: t, answers: answers}
	if in.World == nil {
		in.World = &skeptest.World{}
	}
	in.World.LLM = m.chat
	out := skeptest.Run(Thinker{}, in)
	if len(m.asked) < len(answers) {
		t.Errorf("%d questions, want %d; the turn ended with %v", len(m.asked), len(answers), out.Err)
	}
	return out, m.asked
}

// boss is the input of an agent that can complete tasks.
func boss(body string) skeptest.Input {
	return skeptest.Input{
		Agent: "boss", CanComplete: true, CommTargets: []string{"calc", "analyst"},
		Message: skep.Message{Subject: "question", Body: body},
	}
}

// worker is the input of an agent that was asked by another.
func worker(body string) skeptest.Input {
	return skeptest.Input{
		Agent: "calc", CommTargets: []string{"boss"},
		Message: skep.Message{Subject: "sum", Body: body, Sender: skep.Address{Type: skep.AddressAgent, Name: "boss"}},
	}
}

// did lists the MAIL calls of a turn with what they said.
func did(out skeptest.Outcome) string {
	var list []string
	for _, m := range out.Mail {
		list = append(list, strings.Join(strings.Fields(m.Tool+" "+m.Target+" "+m.Subject+" "+m.Body+m.Finish+m.Note), " "))
	}
	return strings.Join(list, "; ")
}

// results lists the texts that the last question gave back for calls.
func results(r skep.ChatRequest) (texts []string) {
	for _, m := range r.Messages {
		if m.Role == skep.RoleTool {
			text := m.Content
			if m.Error {
				text = "! " + text
			}
			texts = append(texts, text)
		}
	}
	return texts
}

// past makes a history: messages as given, texts as notes, and pairs of a call and
// its result.
func past(parts ...any) (entries []skep.Entry) {
	add := func(e skep.Entry) {
		e.Seq, e.Turn, e.Time = int64(len(entries)+1), int64(len(entries)/4+1), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		entries = append(entries, e)
	}
	for _, p := range parts {
		switch p := p.(type) {
		case skep.Message:
			add(skep.Entry{Message: &p})
		case string:
			add(skep.Entry{Note: p})
		case told:
			id := fmt.Sprintf("t%d", len(entries))
			add(skep.Entry{Call: &skep.ToolCall{ID: id, Name: p.name, Args: json.RawMessage(p.args)}})
			add(skep.Entry{Result: &skep.ToolResult{ID: id, OK: !strings.HasPrefix(p.text, "ERROR"), Text: p.text}})
		}
	}
	return entries
}

// told is a call and its result.
type told struct{ name, args, text string }

func fromUser(body string) skep.Message {
	return skep.Message{
		Type: skep.TypeRequest, Subject: "question", Body: body, Sender: skep.Address{Type: skep.AddressUser, Name: "alice"},
	}
}

func fromAgent(kind skep.MessageType, name, subject, body string) skep.Message {
	return skep.Message{Type: kind, Subject: subject, Body: body, Sender: skep.Address{Type: skep.AddressAgent, Name: name}}
}

func fromSystem(subject, body string) skep.Message {
	return skep.Message{
		Type: skep.TypeResponse, Subject: subject, Body: body, Sender: skep.Address{Type: skep.AddressSystem, Name: "hive"},
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// asked is a request that the workflow has sent.
type asked struct{ id, agent, subject, body string }

// hive plays turns of the workflow agent in one task, on fake time. An agent answers with
// its function; one without leaves its requests open.
type hive struct {
	t      *testing.T
	world  *skeptest.World
	state  json.RawMessage
	agents map[string]func(asked) string
	// log has what was asked, in order; open what is not answered.
	log     []asked
	open    []asked
	replies []report // to boss
	// withdrawn are the agents that got an interrupt, with its payload.
	withdrawn []string
	finish    string // of the task
	shown     []skeptest.Emit
	turns     int
	n         int
}

func newHive(t *testing.T) *hive {
	return &hive{t: t, agents: map[string]func(asked) string{}, world: &skeptest.World{
		KV: skep.ScopeTask, Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), Actions: map[string]func(json.RawMessage) (any, error){},
	}}
}

// echo answers with the name of the agent and what it was asked.
func echo(a asked) string { return `{"did":"` + a.subject + `"}` }

func (h *hive) turn(m skep.Message) {
	h.t.Helper()
	h.turns++
	if m.Type == "" {
		m.Type = skep.TypeRequest
	}
	targets := []string{"boss", "a", "b", "c", "d", "mute", "tools"}
	out := skeptest.Run(Workflow{}, skeptest.Input{
		Agent: "flow", CanComplete: true, CommTargets: targets, Message: m, State: h.state, World: h.world,
		Answer: func(op skep.Op, req json.RawMessage) (any, error) {
			var call struct {
				Tool string            `json:"tool"`
				Args map[string]string `json:"args"`
			}
			if op != skep.OpMail || json.Unmarshal(req, &call) != nil {
				return nil, nil
			}
			if len(call.Args["subject"]) > 4<<10 || len(call.Args["body"]) > 256<<10 { // as the host does
				return nil, skep.Errorf(skep.Limit, "the message is too long")
			}
			if call.Tool != "send_request" {
				return nil, nil
			}
			h.n++
			a := asked{fmt.Sprint("r", h.n), call.Args["target"], call.Args["subject"], call.Args["body"]}
			h.log, h.open = append(h.log, a), append(h.open, a)
			return map[string]string{"id": "m" + a.id, "request_id": a.id, "text": "sent"}, nil
		},
	})
	if out.Err != nil {
		h.t.Fatalf("the turn on %q failed: %v", m.Body, out.Err)
	}
	if len(out.State) > 64<<10 {
		h.t.Fatalf("the state has %d bytes", len(out.State))
	}
	h.state, h.shown = out.State, append(h.shown, out.Emits...)
	for _, one := range out.Mail {
		switch one.Tool {
		case "send_response":
			var r report
			if err := json.Unmarshal([]byte(one.Body), &r); err != nil {
				h.t.Fatal(err)
			}
			h.replies = append(h.replies, r)
		case "task_complete":
			h.finish = one.Finish
		case "send_interrupt":
			h.withdrawn = append(h.withdrawn, one.Target+" ["+one.Subject+"] "+one.Body)
		}
	}
}

var boss = skep.Address{Type: skep.AddressAgent, Name: "boss"}

// start has boss start a plan.
func (h *hive) start(plan string) {
	h.t.Helper()
	h.turn(skep.Message{Sender: boss, Subject: "go", Body: `{"message_type":"workflow_start","payload":` + plan + `}`})
}

func (h *hive) control(kind, payload string) {
	h.t.Helper()
	h.turn(skep.Message{Sender: boss, Subject: "ctl", Body: `{"message_type":"` + kind + `","payload":` + payload + `}`})
}

// reply answers the oldest open request to an agent.
func (h *hive) reply(agent, body string) {
	h.t.Helper()
	for i, a := range h.open {
		if a.agent == agent {
			h.open = append(h.open[:i:i], h.open[i+1:]...)
			h.turn(skep.Message{Type: skep.TypeResponse, RefID: a.id, Subject: "Re: " + a.subject, Body: body,
				Sender: skep.Address{Type: skep.AddressAgent, Name: agent}})
			return
		}
	}
	h.t.Fatalf("nothing is open at %s: %v", agent, h.open)
}

// run lets all agents answer, and time pass where nothing else is left.
func (h *hive) run() {
	h.t.Helper()
	for {
		if !h.answerOne() {
			m, more := h.world.Fire()
			if !more {
				return
			}
			h.turn(m)
		}
	}
}

func (h *hive) answerOne() bool {
	h.t.Helper()
	for _, a := range h.open {
		if answer := h.agents[a.agent]; answer != nil {
			h.reply(a.agent, answer(a))
			return true
		}
	}
	return false
}

// subjects are the subjects of what was asked.
func (h *hive) subjects() string {
	var list []string
	for _, a := range h.log {
		list = append(list, a.subject)
	}
	return strings.Join(list, " ")
}

// last is the last reply to boss, with its outcome.
func (h *hive) last() (r report, o outcome) {
	h.t.Helper()
	if len(h.replies) == 0 {
		h.t.Fatalf("no reply; the state is %s", h.state)
	}
	r = h.replies[len(h.replies)-1]
	raw, err := json.Marshal(r.Result)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		h.t.Fatal(err)
	}
	return r, o
}

package skeptest

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	skep "skep/sdk/go"
)

// World is what lasts from one turn of a test to the next, beside the agent's
// state: values, blobs, timers and the clock; and what the operator has granted. The
// zero value grants nothing. All agents and tasks in it are of one instance. It
// serves one goroutine at a time.
type World struct {
	// KV is the widest scope granted; empty grants none.
	KV skep.Scope
	// Secrets are the names of those that are granted.
	Secrets []string
	// HTTP answers http.fetch; nil grants no request. An error is as
	// [Input.Answer]'s.
	HTTP func(r skep.FetchRequest) (skep.FetchResponse, error)
	// LLM answers llm.chat, also where the agent reads it piece by piece; nil grants
	// no model. An error is as [Input.Answer]'s.
	LLM func(r skep.ChatRequest) (skep.ChatResponse, error)
	// Actions are the agent's, by their names. Each answers with
	// a value that encodes as JSON; an error is as [Input.Answer]'s.
	Actions map[string]func(args json.RawMessage) (any, error)
	// Now is where a turn's clock begins whose input has no Start. Turns and
	// [World.Fire] move it; zero is 2026-01-01 12:00 UTC.
	Now time.Time

	values map[space]map[string]string
	timers []Timer
	blobs  map[string][]byte
	ended  map[string]bool // tasks that are complete
	made   int             // timers so far
}

// Timer is one that a turn has set.
type Timer struct {
	ID, Agent, Task, Body string
	Due                   time.Time
}

// Timers are those that are pending, the next one first.
func (w *World) Timers() []Timer { return slices.Clone(w.timers) }

// Fire takes the next timer of a task that is not complete, and moves the clock
// to where it is due. The message is a turn's input; ok is false when there is
// none.
func (w *World) Fire() (m skep.Message, ok bool) {
	i := slices.IndexFunc(w.timers, func(t Timer) bool { return !w.ended[t.Task] })
	if i < 0 {
		return skep.Message{}, false
	}
	t := w.timers[i]
	w.timers = slices.Delete(w.timers, i, i+1)
	if w.Now.Before(t.Due) {
		w.Now = t.Due
	}
	return skep.Message{
		ID: t.ID, Time: t.Due, Type: skep.TypeResponse, Task: t.Task,
		Sender:     skep.Address{Type: skep.AddressSystem, Name: "test"},
		Recipients: []skep.Address{{Type: skep.AddressAgent, Name: t.Agent}},
		Subject:    skep.SubjectTimer, Body: t.Body,
	}, true
}

// Values are the committed values of a scope, as the agent and task of an input
// have it. They are the World's own: what is set or deleted there, the next turn
// sees.
func (w *World) Values(scope skep.Scope, in Input) map[string]string {
	return w.in(spaceOf(scope, cmp.Or(in.Agent, defaultAgent), cmp.Or(in.Message.Task, defaultTask)))
}

// space keeps the values of scopes apart.
type space struct {
	scope       skep.Scope
	agent, task string
}

func spaceOf(scope skep.Scope, agent, task string) space {
	switch scope {
	case skep.ScopeInstance:
		return space{scope: scope}
	case skep.ScopeAgent:
		return space{scope: scope, agent: agent}
	}
	return space{scope, agent, task}
}

func (w *World) in(s space) map[string]string {
	if w.values == nil {
		w.values = map[space]map[string]string{}
	}
	if w.values[s] == nil {
		w.values[s] = map[string]string{}
	}
	return w.values[s]
}

// begin takes note of a message: one that is not the system's reopens its task.
func (w *World) begin(m *skep.Message) {
	if !m.FromSystem() {
		delete(w.ended, m.Task)
	}
}

// commit takes over what a turn that ended well has staged.
func (w *World) commit(h *host) {
	for s, values := range h.staged {
		for key, value := range values {
			if value == nil {
				delete(w.in(s), key)
			} else {
				w.in(s)[key] = *value
			}
		}
	}
	for _, data := range h.blobs {
		w.PutBlob(data)
	}
	w.timers = h.pending()
	slices.SortStableFunc(w.timers, func(a, b Timer) int { return a.Due.Compare(b.Due) })
	if slices.ContainsFunc(h.mail, func(m Mail) bool { return m.Tool == "task_complete" }) {
		if w.ended == nil {
			w.ended = map[string]bool{}
		}
		w.ended[h.in.Message.Task] = true
	}
}

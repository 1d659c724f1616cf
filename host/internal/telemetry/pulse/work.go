package pulse

import (
	"time"

	"skep/host/internal/swarm"
)

// Causes of failed turns by which an agent comes into quarantine, or is not run for it.
const (
	causePoison     = "poison"
	causeQuarantine = "quarantine"
)

// Committed implements [swarm.Observer]: it publishes what a commit has changed.
func (r *Ring) Committed(c swarm.Change) {
	b := changeEvents{change: &c}
	if c.Turn != nil {
		b.addTurn(c.Turn)
	}
	for i := range c.Queued {
		b.addMail(Event{Kind: Mail}, &c.Queued[i])
	}
	for i := range c.Outbox {
		o := &c.Outbox[i]
		b.addMail(Event{Kind: Outbox, State: o.State, Peer: o.Peer}, &o.Mail)
	}
	b.addQuestions(c.Asked, "asked")
	state := "answered"
	if c.To.Ended() { // as by a person who cancelled the task
		state = "withdrawn"
	}
	b.addQuestions(c.Answered, state)
	if c.To != c.From {
		e := Event{Kind: Task, State: string(c.To), Was: string(c.From)}
		if c.To.Ended() {
			e.Usage = newUsage(c.Usage)
			e.Usage.Turns, e.Usage.Wall = c.Usage.Turns, milliseconds(max(0, c.At.Sub(c.Created)))
		}
		b.add(e)
	}
	r.Publish(b.events...)
}

// changeEvents gathers the events of a change.
type changeEvents struct {
	change *swarm.Change
	events []Event
}

// add adds an event of the change's task.
func (b *changeEvents) add(e Event) {
	key := b.change.Task
	e.Time, e.Tenant, e.Swarm, e.Instance, e.Task = b.change.At.UTC().Truncate(time.Microsecond), key.Tenant, key.Swarm, key.Instance, key.Task
	b.events = append(b.events, e)
}

func (b *changeEvents) addTurn(t *swarm.CommittedTurn) {
	e := Event{Kind: Turn, Agent: t.Agent, Turn: t.N, State: "ok", Usage: newUsage(t.Usage)}
	e.Usage.Queued, e.Usage.Wall = milliseconds(t.Queued), milliseconds(t.Wall)
	switch f := t.Failure; {
	case t.Suspended:
		e.State = "waits"
	case f != nil:
		e.State = f.Cause
		if f.Limit != "" {
			e.Key = "[agents." + t.Agent + "] " + f.Limit
		}
	}
	if n := len(t.ModelFailures); n > 0 {
		e.Model, e.ModelCause = t.ModelFailures[n-1].Model, t.ModelFailures[n-1].Cause
	}
	b.add(e)
	for _, key := range t.Exceeded {
		b.add(Event{Kind: Budget, Agent: t.Agent, Turn: t.N, State: "exceeded", Key: key})
	}
	switch e.State {
	case causePoison:
		b.add(Event{Kind: Quarantine, Agent: t.Agent, Turn: t.N, State: "confined"})
	case causeQuarantine:
		b.add(Event{Kind: Quarantine, Agent: t.Agent, Turn: t.N, State: "barred"})
	}
}

func (b *changeEvents) addMail(e Event, m *swarm.MailShape) {
	e.Type, e.Tier, e.From, e.FromSwarm, e.To, e.Size = string(m.Type), m.Tier, m.From, m.FromSwarm, m.To, m.Size
	b.add(e)
}

func (b *changeEvents) addQuestions(list []swarm.QuestionShape, state string) {
	for _, q := range list {
		b.add(Event{Kind: Question, State: state, Agent: q.Agent, Call: q.Call, Action: q.Action})
	}
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"skep/host/client"
	"skep/spec/mail"
)

// past reads an agent's history turn by turn.
type past struct {
	agent string
	pull  func() (client.Entry, error, bool)
	stop  func()
	// first is the entry that begins the next turn, if it was read already.
	first *client.Entry
	// ready is a turn that was read, but is not due.
	ready *turnView
}

func openPast(ctx context.Context, c *client.Client, task, agent string) *past {
	p := &past{agent: agent}
	p.pull, p.stop = iter.Pull2(c.Entries(ctx, task, agent, 0))
	return p
}

// turnView is one turn as its agent remembers it.
type turnView struct {
	agent  string
	n      int64
	at     time.Time
	in     json.RawMessage
	steps  []string
	more   int // steps that are not kept
	failed bool
	// told is what the turn's record tells, nil when it is gone.
	told *client.Turn
}

// maxSteps bounds the steps of one turn that are shown.
const maxSteps = 1000

// next returns the next turn if it is not later than until.
func (p *past) next(until time.Time) (t turnView, ok bool, err error) {
	if p.ready == nil {
		if p.ready, err = p.read(); err != nil || p.ready == nil {
			return turnView{}, false, err
		}
	}
	if p.ready.at.After(until) {
		return turnView{}, false, nil
	}
	t, p.ready = *p.ready, nil
	return t, true, nil
}

// read reads one turn, nil after the last. Entries of a turn stand together;
// those without one are mail that all agents are told of.
func (p *past) read() (*turnView, error) {
	var t *turnView
	for {
		e, err := p.entry()
		switch {
		case err != nil:
			return nil, err
		case e == nil:
			return t, nil
		case t != nil && e.Turn != t.n:
			p.first = e
			return t, nil
		case e.Turn == 0:
			continue
		case t == nil:
			t = &turnView{agent: p.agent, n: e.Turn}
		}
		t.add(*e)
	}
}

// entry returns the next entry, nil after the last. What the host does not know
// as an agent has no history.
func (p *past) entry() (*client.Entry, error) {
	if e := p.first; e != nil {
		p.first = nil
		return e, nil
	}
	e, err, ok := p.pull()
	var refusal *client.Error
	if !ok || errors.As(err, &refusal) && refusal.Status == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// failedNote begins the note that a failed turn leaves.
const failedNote = "turn failed: "

func (t *turnView) add(e client.Entry) {
	if at := wireTime(e.Time); at.After(t.at) {
		t.at = at
	}
	text := ""
	switch {
	case e.Kind == "in" && t.in == nil:
		t.in = e.Message
		return
	case e.Call != nil:
		text = e.Call.Name + " " + string(e.Call.Args)
	case e.Result != nil:
		text = "→ " + e.Result.Text
	case strings.HasPrefix(e.Note, failedNote):
		t.failed = true
		return
	case e.Note != "":
		text = "note: " + e.Note
	default:
		return
	}
	if len(t.steps) >= maxSteps {
		t.more++
		return
	}
	t.steps = append(t.steps, text)
}

// message is the mail that the turn took.
func (t *turnView) message() (m mail.Message, ok bool) {
	return m, t.in != nil && json.Unmarshal(t.in, &m) == nil
}

func (t *turnView) outcome() string {
	text := "ok"
	if t.failed {
		text = "failed"
	}
	if t.told == nil {
		return text
	}
	if u := t.told.Usage; u != nil {
		text += " in " + span(u.Wall)
	} else {
		text = "not over"
	}
	if t.told.Attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", t.told.Attempt)
	}
	return text
}

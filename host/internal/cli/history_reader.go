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

// historyReader reads an agent's history turn by turn.
type historyReader struct {
	agent string
	pull  func() (client.Entry, error, bool)
	stop  func()
	// lookahead is the entry that begins the next turn, if it was read already.
	lookahead *client.Entry
	// undue is a turn that was read, but is not due.
	undue *turnView
}

func openHistory(ctx context.Context, c *client.Client, task, agent string) *historyReader {
	p := &historyReader{agent: agent}
	p.pull, p.stop = iter.Pull2(c.Entries(ctx, task, agent, 0))
	return p
}

// turnView is one turn as its agent remembers it.
type turnView struct {
	agent   string
	n       int64
	at      time.Time
	in      json.RawMessage
	steps   []string
	dropped int // steps that are not kept
	failed  bool
	// record is the turn's record, nil when it is gone.
	record *client.Turn
}

// maxSteps bounds the steps of one turn that are shown.
const maxSteps = 1000

// next returns the next turn if it is not later than until.
func (p *historyReader) next(until time.Time) (t turnView, ok bool, err error) {
	if p.undue == nil {
		if p.undue, err = p.readTurn(); err != nil || p.undue == nil {
			return turnView{}, false, err
		}
	}
	if p.undue.at.After(until) {
		return turnView{}, false, nil
	}
	t, p.undue = *p.undue, nil
	return t, true, nil
}

// readTurn reads one turn, nil after the last. Entries of a turn stand together;
// entries without a turn are mail that all agents get.
func (p *historyReader) readTurn() (*turnView, error) {
	var t *turnView
	for {
		e, err := p.readEntry()
		switch {
		case err != nil:
			return nil, err
		case e == nil:
			return t, nil
		case t != nil && e.Turn != t.n:
			p.lookahead = e
			return t, nil
		case e.Turn == 0:
			continue
		case t == nil:
			t = &turnView{agent: p.agent, n: e.Turn}
		}
		t.add(*e)
	}
}

// readEntry returns the next entry, nil after the last. A name that is no
// agent has no history.
func (p *historyReader) readEntry() (*client.Entry, error) {
	if e := p.lookahead; e != nil {
		p.lookahead = nil
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
		t.dropped++
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
	if t.record == nil {
		return text
	}
	if u := t.record.Usage; u != nil {
		text += " in " + span(u.Wall)
	} else {
		text = "not over"
	}
	if t.record.Attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", t.record.Attempt)
	}
	return text
}

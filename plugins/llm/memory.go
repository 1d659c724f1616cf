package main

import (
	"slices"
	"strings"

	skep "skep/sdk/go"
)

// memory is the agent's state: what stands for the entries of its history that it
// does not show the model any more.
type memory struct {
	// Through is the last of them; Lost counts those that are not in the summary.
	Through int64 `json:"through,omitempty"`
	Lost    int64 `json:"lost,omitempty"`
	// First is the mail the task began with, as the model sees it, and Summary
	// what became of the others.
	First   string `json:"first,omitempty"`
	Summary string `json:"summary,omitempty"`
}

// Bounds of what is kept, in bytes: both fit into the state, escaped.
const (
	maxFirst   = 6 << 10
	maxSummary = 8 << 10
)

// remember reads what the agent has in mind and in its history.
func (m *mind) remember() error {
	if err := m.turn.State(&m.memory); err != nil {
		return err
	}
	var err error
	m.past, err = history(m.turn, m.memory.Through)
	return err
}

// tokens is an upper guess of what texts of so many bytes cost: few languages need
// a token for less than three bytes.
func tokens(bytes int) int { return bytes/3 + 1 }

// size guesses what an entry costs.
func size(e skep.Entry) int {
	n := len(e.Note) + 40
	switch {
	case e.Message != nil:
		n += len(e.Message.Body) + len(e.Message.Subject) + 200
	case e.Call != nil:
		n += len(e.Call.Args) + len(e.Call.Name)
	case e.Result != nil:
		n += len(e.Result.Text)
	}
	return tokens(n)
}

func sizes(entries []skep.Entry) (sum int) {
	for _, e := range entries {
		sum += size(e)
	}
	return sum
}

// maxPast is how many entries the model is shown at most: a host takes 2,000
// messages.
const maxPast = 1000

// compact takes the oldest entries out of what the model is shown when all of them
// are too long, and leaves half of what is allowed: not every turn has to do it then.
func (m *mind) compact(budget int) error {
	if sizes(m.past) <= budget && len(m.past) <= maxPast {
		return nil
	}
	from, least := len(m.past), len(m.past)-maxPast/2
	for left := budget / 2; from > max(0, least) && left >= size(m.past[from-1]); from-- {
		left -= size(m.past[from-1])
	}
	for from < len(m.past) && m.past[from].Result != nil { // its call would be missing
		from++
	}
	old := m.past[:from]
	if len(old) == 0 {
		return nil
	}
	m.keepFirst(old)
	if err := m.sumUp(old, budget); err != nil {
		return err
	}
	m.memory.Through, m.past = old[len(old)-1].Seq, m.past[from:]
	return m.turn.SetState(m.memory)
}

// keepFirst keeps the mail that the task began with word by word.
func (m *mind) keepFirst(old []skep.Entry) {
	i := slices.IndexFunc(old, func(e skep.Entry) bool { return e.Message != nil })
	if m.memory.First == "" && i >= 0 {
		first := *old[i].Message
		first.Subject, first.Body, first.Recipients = cut(first.Subject, maxFirst/4), cut(first.Body, maxFirst), nil
		m.memory.First = frame(&first, m.params.Times)
	}
}

// sumUp puts entries into the summary, as many at once as the budget allows. Those
// that no model can sum up are left out, and the model is told how many.
func (m *mind) sumUp(old []skep.Entry, budget int) error {
	model := m.params.Model
	if m.params.SummaryModel != nil {
		model = *m.params.SummaryModel
	}
	for len(old) > 0 && model != "" {
		records, n := m.records(old, budget)
		rsp, err := m.ask(skep.ChatRequest{
			Model: model, MaxTokens: maxSummary / 4,
			Messages: []skep.ChatMessage{{Role: skep.RoleSystem, Content: summing}, {Role: skep.RoleUser, Content: records}},
		}, nil)
		summary := strings.TrimSpace(printable(rsp.Text))
		switch {
		case calledOff(err):
			return err
		case err != nil || summary == "":
			m.turn.LogAt(skep.LevelWarn, "a part of the history is left out and not summed up", "entries", len(old), "error", err)
			model = ""
			continue
		}
		m.memory.Summary, old = cut(summary, maxSummary), old[n:]
	}
	m.memory.Lost += int64(len(old))
	return nil
}

// maxRecord bounds one record of what is summed up.
const maxRecord = 8 << 10

// records are the old summary and the oldest entries as one text, and how many of
// these are in it.
func (m *mind) records(old []skep.Entry, budget int) (string, int) {
	var parts []string
	if m.memory.Summary != "" {
		parts = append(parts, element("summary", m.memory.Summary))
	}
	for i, e := range old {
		part := record(e, m.params.Times)
		if budget -= tokens(len(part)); budget < 0 && i > 0 {
			return strings.Join(parts, "\n"), i
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "\n"), len(old)
}

func record(e skep.Entry, times bool) string {
	switch {
	case e.Message != nil:
		short := *e.Message
		short.Body = cut(short.Body, maxRecord)
		return frame(&short, times)
	case e.Call != nil:
		return element("call", e.Call.Name+" "+cut(string(e.Call.Args), maxRecord))
	case e.Result != nil:
		return element("result", cut(e.Result.Text, maxRecord))
	}
	return element("note", cut(e.Note, maxRecord))
}

package mailtest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"skep/abi"
	"skep/spec/mail"
)

// event is one entry of a task's log, or of a stream.
type event struct {
	Name string
	Data struct {
		Description string
		Response    string
		Extra       struct {
			Message   json.RawMessage `json:"full_message"`
			Recipient string
			Caller    string
			Tool      string `json:"tool_name"`
		} `json:"extra_data"`
	}
}

// record is what GET /task tells.
type record struct {
	State        string
	Owner        string   `json:"task_owner"`
	Contributors []string `json:"task_contributors"`
	Running      bool     `json:"is_running"`
	Completed    bool
	Queue        [][3]json.RawMessage `json:"task_message_queue"`
	events       []event
}

func (w *world) record(task string) record { return w.recordAs(w.token, task) }

func (w *world) recordAs(token, task string) (rec record) {
	w.t.Helper()
	r := w.do(token, http.MethodGet, "/task", encode(obj{"task_id": task}))
	var log struct {
		Events []struct{ Event, Data string }
	}
	if r.status != http.StatusOK || json.Unmarshal([]byte(r.body), &rec) != nil || json.Unmarshal([]byte(r.body), &log) != nil {
		w.t.Fatalf("task %s: %d %s", task, r.status, r.body)
	}
	for _, e := range log.Events {
		one := event{Name: e.Event}
		if err := json.Unmarshal([]byte(e.Data), &one.Data); err != nil {
			w.t.Fatalf("event %s: %v", e.Event, err)
		}
		rec.events = append(rec.events, one)
	}
	return rec
}

// settled waits until a task has ended and returns its record.
func (w *world) settled(task string) record {
	w.t.Helper()
	w.eventually("task "+task+" ends", func() bool { return !w.record(task).Running })
	return w.record(task)
}

// stash lists the messages a task keeps for later, in the order in which they
// would be taken.
func (r record) stash(t *testing.T) (subjects []string) {
	t.Helper()
	type item struct {
		tier, seq int
		subject   string
	}
	var items []item
	for _, q := range r.Queue {
		var it item
		m, err := mail.ParseMessage(q[2])
		if err != nil || json.Unmarshal(q[0], &it.tier) != nil || json.Unmarshal(q[1], &it.seq) != nil {
			t.Fatalf("stashed %s: %v", q, err)
		}
		it.subject = m.Payload.Subject
		items = append(items, it)
	}
	slices.SortFunc(items, func(a, b item) int {
		if a.tier != b.tier {
			return a.tier - b.tier
		}
		return a.seq - b.seq
	})
	for _, it := range items {
		subjects = append(subjects, it.subject)
	}
	return subjects
}

func (r record) names() (names []string) {
	for _, e := range r.events {
		names = append(names, e.Name)
	}
	return names
}

// mail returns the messages of a log. Each must be valid and without nulls.
func (r record) mail(t *testing.T) (all []mail.Message) {
	t.Helper()
	for _, e := range r.events {
		if e.Name == "new_message" {
			all = append(all, e.message(t))
		}
	}
	return all
}

func (e event) message(t *testing.T) mail.Message {
	t.Helper()
	m, err := mail.ParseMessage(e.Data.Extra.Message)
	if err != nil || bytes.Contains(e.Data.Extra.Message, []byte(":null")) {
		t.Fatalf("the host has made an invalid message: %v\n%s", err, e.Data.Extra.Message)
	}
	return m
}

// flow tells a log's mail as "sender>recipient:subject", one for each recipient.
func (r record) flow(t *testing.T) (lines []string) {
	t.Helper()
	for _, e := range r.events {
		if e.Name != "new_message" {
			continue
		}
		m := e.message(t)
		to := e.Data.Extra.Recipient
		if to == "" {
			to = m.Payload.Recipient().Name
		}
		from := m.Payload.Sender.Name
		if m.Payload.Sender.Type == mail.User {
			from = "user"
		}
		lines = append(lines, fmt.Sprintf("%s>%s:%s", from, to, m.Payload.Subject))
	}
	return lines
}

// history reads an agent's whole history; its numbers leave no gap.
func (w *world) history(task, agent string) (entries []abi.HistoryEntry) {
	w.t.Helper()
	for after := int64(0); ; {
		r := w.do(w.token, http.MethodGet, fmt.Sprintf("/skep/v1/tasks/%s/history?agent=%s&after=%d&limit=500", task, agent, after), "")
		var page struct {
			Entries []abi.HistoryEntry
			Next    *int64
		}
		if r.status != http.StatusOK || json.Unmarshal([]byte(r.body), &page) != nil {
			w.t.Fatalf("history of %s: %d %s", agent, r.status, r.body)
		}
		entries = append(entries, page.Entries...)
		if page.Next == nil {
			break
		}
		after = *page.Next
	}
	for i, e := range entries {
		if e.Seq != int64(i+1) {
			w.t.Errorf("history of %s: entry %d has number %d", agent, i+1, e.Seq)
		}
	}
	return entries
}

// taken lists the subjects of the messages in an agent's history: those it took
// a turn on, in the order of its turns, and completions.
func (w *world) taken(task, agent string) (subjects []string) {
	w.t.Helper()
	seen := map[string]bool{}
	for _, e := range w.history(task, agent) {
		if e.Kind != abi.KindIn {
			continue
		}
		m, err := mail.ParseMessage(e.Message)
		if err != nil {
			w.t.Fatal(err)
		}
		if seen[m.ID] {
			w.t.Errorf("history of %s holds message %s twice", agent, m.ID)
		}
		seen[m.ID] = true
		subjects = append(subjects, m.Payload.Subject)
	}
	return subjects
}

// results lists the texts of all results in an agent's history.
func (w *world) results(task, agent string) (texts []string) {
	w.t.Helper()
	for _, e := range w.history(task, agent) {
		if e.Result != nil {
			texts = append(texts, e.Result.Text)
		}
	}
	return texts
}

// stream reads events as they come, until see returns false or the stream ends.
func stream(t *testing.T, body io.Reader, see func(event) bool) {
	t.Helper()
	var e event
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "event":
			e = event{Name: value}
		case "data":
			if err := json.Unmarshal([]byte(value), &e.Data); err != nil {
				t.Errorf("event %s: %v", e.Name, err)
			}
			if !see(e) {
				return
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
}

// events splits the body of a stream that has ended.
func events(t *testing.T, body string) (all []event) {
	t.Helper()
	stream(t, strings.NewReader(body), func(e event) bool {
		all = append(all, e)
		return true
	})
	return all
}

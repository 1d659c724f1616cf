package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/client"
)

// gets is an event of mail that an agent gets.
func gets(to string) client.Event {
	return client.Event{Name: "new_message", Timestamp: "2026-11-20T12:00:00Z", Extra: json.RawMessage(fmt.Sprintf(`{"recipient":%q}`, to))}
}

// called is an event of a turn that has ended.
func called(agent, id string) client.Event {
	return client.Event{Name: "tool_call", Timestamp: "2026-11-20T12:00:00Z", Extra: json.RawMessage(fmt.Sprintf(`{"caller":%q,"tool_name":"help","tool_call_id":%q}`, agent, id))}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	emission := func(name, extra string) client.Event {
		return client.Event{Name: name, Extra: json.RawMessage(extra)}
	}
	away := client.Event{Name: "new_message", Extra: json.RawMessage(`{"recipient":"chief","full_message":` +
		`{"id":"00000000-0000-4000-8000-000000000001","timestamp":"2026-11-20T12:00:00.000000+00:00","msg_type":"response","message":{"task_id":"t-1",` +
		`"request_id":"00000000-0000-4000-8000-000000000002","sender":{"address_type":"agent","address":"stats@depot"},` +
		`"recipient":{"address_type":"agent","address":"chief"},"subject":"s","body":"b"}}}`)}
	failed := client.Event{Name: "agent_error", Extra: json.RawMessage(`{"caller":"math"}`)}
	for _, tc := range []struct {
		name   string
		events []client.Event
		want   string
	}{
		{"mail", []client.Event{gets("math")}, "math: no word for 3s"},
		{"two agents", []client.Event{gets("math"), gets("poet")}, "math: no word for 3s · also poet"},
		{"an answer", []client.Event{gets("math"), called("math", "t1.1"), called("math", "t1.2"), gets("chief")}, "chief: no word for 3s"},
		{"one of two answers", []client.Event{gets("math"), gets("math"), called("math", "t1.1"), called("math", "t1.2")}, "math: no word for 3s"},
		{"both answers", []client.Event{gets("math"), gets("math"), called("math", "t1.1"), called("math", "t2.1")}, "host: no mail for 3s"},
		{"mail to another swarm", []client.Event{gets("stats@depot")}, "stats@depot: no word for 3s"},
		{"its answer", []client.Event{gets("stats@depot"), away}, "chief: no word for 3s"},
		{"a failed turn", []client.Event{gets("math"), failed}, "host: no mail for 3s"},
		{"a sum", []client.Event{gets("math"), emission(client.EventOutput, `{"caller":"math","turn":1,"n":2}`), called("math", "t1.1")}, "host: no mail for 3s"},
		{"a piece", []client.Event{gets("math"), emission(client.EventChunk, `{"caller":"math","turn":1,"n":2}`)}, "math: no word for 3s"},
		{"a call of another form", []client.Event{gets("math"), called("math", "toolu_1")}, "math: no word for 3s"},
		{"no JSON", []client.Event{gets("math"), {Name: "tool_call", Extra: json.RawMessage(`{"caller":"math","tool_call_id":7}`)}}, "math: no word for 3s"},
		{"one without mail", []client.Event{called("chief", "t1.1")}, "host: no mail for 3s"},
		{"the end", []client.Event{gets("math"), {Name: client.EventComplete}}, "host: no mail for 3s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var q idleIndicator
			for _, e := range tc.events {
				q.recordEvent(time.Time{}, e)
			}
			now := time.Unix(100, 0)
			q.advance(now)
			agent, text := q.describe(now.Add(3 * time.Second))
			if got := agent + ": " + text; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// The line comes after a second without an event, grows, and goes when mail flows.
func TestTick(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := newMailview(&out, style{}, 80)
	v.live = true
	v.showIdle(time.Unix(99, 0))
	v.printEvent(gets("math"))
	for _, ms := range []int64{0, 250, 999, 1000, 2500} {
		v.showIdle(time.UnixMilli(100_000 + ms))
	}
	v.printEvent(client.Event{Name: client.EventProgress, Timestamp: "2026-11-20T12:00:03Z", Extra: []byte(`{"caller":"math","turn":1,"n":1,"text":"half","fraction":0.5}`)})
	v.showIdle(time.UnixMilli(103_000))
	v.showIdle(time.UnixMilli(104_500))
	v.wipe()
	var seen []string
	for part := range strings.SplitSeq(out.String(), "\r") {
		if strings.Contains(part, "…") {
			seen = append(seen, strings.TrimSpace(part[strings.LastIndex(part, "\n")+1:]))
		}
	}
	want := []string{
		"1.000  math       … no word for 1s", "2.500  math       … no word for 2s",
		"3.000  math       … 50 % · half", "4.500  math       … 50 % · half · no word for 1s",
	}
	if strings.Join(seen, "\n") != strings.Join(want, "\n") {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
	if got := screen(out.String()); strings.Contains(got, "math") {
		t.Errorf("what is left on the screen:\n%s", got)
	}
}

// watched is a stream that signals when a text was written to it.
type watched struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	text string
	seen chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(string(p), w.text) {
		close(w.seen)
		w.text = "\x00" // once
	}
	return w.buf.Write(p)
}

// sendInSilence sends to a host whose agent is idle for three seconds, and
// returns the notes and whether a clock was asked for.
func sendInSilence(t *testing.T, terminal, shown bool, args ...string) (notes string, asked bool) {
	t.Helper()
	f := newFakeHost(t, &fakeHost{
		events:  handed(mailEvent(1, "00.000", "alice", "chief", "request", "", "go"), "chief"),
		subject: "::task_complete::", response: "42", hold: make(chan struct{}),
	})
	s := newShell(map[string]string{"NO_COLOR": "1"}, append([]string{"send", "--url", f.url, "go"}, args...)...)
	w := &watched{text: "you", seen: make(chan struct{})}
	s.Stderr, s.StderrTerminal, s.Width = w, terminal, 80
	ticks := make(chan time.Time)
	s.Every = func(time.Duration) (<-chan time.Time, func()) { asked = true; return ticks, func() {} }
	code := make(chan int)
	go func() { code <- Main(t.Context(), s.Env) }()
	if shown {
		<-w.seen
		for i := range int64(4) { // the last is taken when the one before is done
			ticks <- time.Unix(100+i, 0)
		}
	}
	close(f.hold)
	if got := <-code; got != exitOK {
		t.Errorf("code %d", got)
	}
	return w.buf.String(), asked
}

// Only a terminal shows that a turn computes.
func TestSendShowsSilence(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		terminal bool
		args     []string
		shown    bool
	}{
		{"a terminal", true, nil, true},
		{"a file", false, nil, false},
		{"data", true, []string{"-o", "json"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			notes, asked := sendInSilence(t, tc.terminal, tc.shown, tc.args...)
			if got := strings.Contains(notes, "chief      … no word for 2s"); got != tc.shown || asked != tc.shown {
				t.Errorf("shown %v, with a clock %v, want %v: %q", got, asked, tc.shown, notes)
			}
			if got := screen(notes); strings.Contains(got, "no word for") {
				t.Errorf("what is left on the screen:\n%s", got)
			}
		})
	}
}

// A note that is written meanwhile stands on a line of its own.
func TestNoteOverALineThatChanges(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := &locked{w: &out}
	if err := w.show("a long line that changes", 24); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("note\n")); err != nil {
		t.Fatal(err)
	}
	if got := screen(out.String()); got != "note\n" {
		t.Errorf("the screen shows %q", got)
	}
	broken := &locked{w: failing{}, shown: 3}
	if _, err := broken.Write([]byte("note\n")); err == nil {
		t.Error("nobody learns that nothing is written")
	}
}

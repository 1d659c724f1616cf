package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pages is a host whose agent remembers so many things, two to a page.
func pages(t *testing.T, total int) *Client {
	return fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		after := 0
		fmt.Sscan(r.URL.Query().Get("after"), &after)
		var entries []string
		for n := after + 1; n <= min(after+2, total); n++ {
			entries = append(entries, fmt.Sprintf(`{"seq":%d,"turn":%d,"time":"x","kind":"note","note":"n"}`, n, n))
		}
		next := "null"
		if after+2 < total {
			next = fmt.Sprint(after + 2)
		}
		reply(w, 200, `{"task_id":"t","agent":"a","entries":[`+strings.Join(entries, ",")+`],"next":`+next+`}`)
	})
}

func TestEntries(t *testing.T) {
	t.Parallel()
	c := pages(t, 5)
	for after, want := range map[int64]string{0: "12345", 3: "45", 5: ""} {
		got := ""
		for e, err := range c.Entries(t.Context(), "t", "a", after) {
			if err != nil || e.Turn != e.Seq || e.Kind != "note" || e.Note != "n" || !json.Valid(e.Raw) {
				t.Fatalf("%+v, %v", e, err)
			}
			got += fmt.Sprint(e.Seq)
		}
		if got != want {
			t.Errorf("after %d: %s, want %s", after, got, want)
		}
	}
	for e := range c.Entries(t.Context(), "t", "a", 0) {
		if e.Seq == 3 {
			break
		}
	}
}

func TestEntriesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no entry": `{"entries":[1],"next":null}`,
		"a circle": `{"entries":[],"next":0}`,
	} {
		c := fakeHost(t, Options{}, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, body) })
		var last error
		for _, err := range c.Entries(t.Context(), "t", "a", 0) {
			last = err
		}
		if !errors.Is(last, ErrNotMAIL) {
			t.Errorf("%s: %v", name, last)
		}
	}
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, _ *http.Request) { reply(w, 404, `{"detail":"no"}`) })
	var refusal *Error
	for _, err := range c.Entries(t.Context(), "t", "a", 0) {
		if !errors.As(err, &refusal) || refusal.Status != 404 {
			t.Errorf("%v", err)
		}
	}
}

// logHost is a host whose task has events up to a number and does not end. Each
// connection brings a few, with pieces that no log keeps between them.
func logHost(t *testing.T, last, each int) *Client {
	return fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/events") {
			reply(w, 200, `{"task_id":"t","is_running":false}`)
			return
		}
		after := 0
		fmt.Sscan(r.Header.Get("Last-Event-ID"), &after)
		w.Header().Set("Content-Type", "text/event-stream")
		for n := after + 1; n <= min(after+each, last); n++ {
			fmt.Fprintf(w, "event: agent_chunk\ndata: {\"timestamp\":\"x\"}\n\nid: %d\nevent: tool_call\ndata: {\"timestamp\":\"x\"}\n\n", n)
		}
	})
}

func TestLog(t *testing.T) {
	t.Parallel()
	c := logHost(t, 9, 2)
	for _, tc := range []struct {
		after, through int64
		want           string
	}{{0, 5, "12345"}, {2, 9, "3456789"}, {4, 4, ""}, {9, 3, ""}} {
		got := ""
		for e, err := range c.Log(t.Context(), "t", tc.after, tc.through) {
			if err != nil {
				t.Fatal(err)
			}
			got += fmt.Sprint(e.Cursor)
		}
		if got != tc.want {
			t.Errorf("after %d through %d: %s, want %s", tc.after, tc.through, got, tc.want)
		}
	}
	n := 0
	for range c.Log(t.Context(), "t", 0, 9) {
		if n++; n == 3 {
			break
		}
	}
}

func TestLogThatEndsEarly(t *testing.T) {
	t.Parallel()
	var last error
	n := 0
	for _, err := range logHost(t, 3, 2).Log(t.Context(), "t", 0, 9) {
		if last = err; err == nil {
			n++
		}
	}
	if !errors.Is(last, errShort) || n != 3 {
		t.Errorf("%d events, then %v", n, last)
	}
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, _ *http.Request) { reply(w, 404, `{"detail":"no"}`) })
	var refusal *Error
	for _, err := range c.Log(t.Context(), "t", 0, 1) {
		if !errors.As(err, &refusal) {
			t.Errorf("%v", err)
		}
	}
}

// TestEventJSON wants an event that was written to be read as it was.
func TestEventJSON(t *testing.T) {
	t.Parallel()
	for _, want := range []Event{
		{Cursor: 7, Name: "tool_call", Timestamp: "x", Description: "d", Extra: json.RawMessage(`{"caller":"a"}`)},
		{Cursor: 8, Name: EventComplete, Timestamp: "x", Response: "yes"},
		{Cursor: 9, Name: EventError, Timestamp: "x"},
		{Name: EventNote, Timestamp: "x", Extra: json.RawMessage(`{"n":1}`)},
	} {
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Event
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
	if err := json.NewEncoder(io.Discard).Encode(Event{Extra: json.RawMessage("{")}); err == nil {
		t.Error("an event that is no JSON was written")
	}
}

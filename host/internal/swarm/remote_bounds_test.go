package swarm_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// reporter is depot, of which hive's task t waits for one call, with the words in
// which it tells of more.
func reporter(t *testing.T) (*hive, func(calls ...obj)) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	p.humans("depot")
	pendings(t, hive.ask(requestTo("math@depot", "x"), task("t")))
	p.rest()
	v := &visitor{post: p, from: "depot", to: "hive", task: hive.record("t").Task}
	return hive, func(calls ...obj) {
		t.Helper()
		raw, err := json.Marshal(calls)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.send(mail.Response, func(w *mail.Interswarm) {
			w.Payload.Sender = mail.Address{Type: mail.System, Name: "depot"}
			w.Payload.Recipients[0].Name = "boss@hive"
			w.Payload.Subject, w.Payload.Body = mail.SubjectBreakpointToolCall, string(raw)
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func named(id, name, args string) obj { return obj{"call_id": id, "name": name, "arguments": args} }

// All that a peer says of its calls counts: ids, names and arguments. What is too much
// reaches the agent as mail, and the task is as it was.
func TestPeerCallsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		calls []obj
		kept  int
	}{
		"the longest id":   {[]obj{named(strings.Repeat("c", 1024), "n", "{}")}, 2},
		"an id too long":   {[]obj{named(strings.Repeat("c", 1025), "n", "{}")}, 1},
		"the longest name": {[]obj{named("c", strings.Repeat("n", 128), "{}")}, 2},
		"a name too long":  {[]obj{named("c", strings.Repeat("n", 129), "{}")}, 1},
		"large arguments":  {[]obj{named("c", "n", strings.Repeat("x", swarm.MaxBreakpointBytes-4096))}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			hive, report := reporter(t)
			report(c.calls...)
			snap := hive.record("t")
			if len(snap.Task.PeerCalls) != c.kept || len(snap.Rows) != 2-c.kept {
				t.Errorf("%d calls, %d rows", len(snap.Task.PeerCalls), len(snap.Rows))
			}
		})
	}
}

// Ids and names of many calls count as well as their arguments.
func TestPeerCallsCountWhole(t *testing.T) {
	hive, report := reporter(t)
	args := strings.Repeat("x", 2300)
	var calls []obj
	for i := range 60 {
		calls = append(calls, named(fmt.Sprintf("%04d", i)+strings.Repeat("c", 1020), strings.Repeat("n", 128), args))
	}
	report(calls...)
	if n := len(hive.record("t").Task.PeerCalls); n != 1 {
		t.Errorf("%d calls are kept", n)
	}
	report(calls[:40]...)
	if n := len(hive.record("t").Task.PeerCalls); n != 41 {
		t.Errorf("%d calls are kept", n)
	}
}

// Arguments of several reports count together.
func TestPeerArgumentsAddUp(t *testing.T) {
	hive, report := reporter(t)
	report(named("c", "n", strings.Repeat("x", swarm.MaxBreakpointBytes/2)))
	report(named("d", "n", strings.Repeat("x", swarm.MaxBreakpointBytes/2)))
	if snap := hive.record("t"); len(snap.Task.PeerCalls) != 2 || len(snap.Rows) != 1 {
		t.Errorf("%d calls, %d rows", len(snap.Task.PeerCalls), len(snap.Rows))
	}
}

// A report to a paused task logs its own calls and no others; the record has all.
func TestReportLogsItsOwnCalls(t *testing.T) {
	hive, report := reporter(t)
	before := hive.record("t").Task.Cursor
	for i := range 20 {
		report(named(fmt.Sprint("more", i), "n", strings.Repeat("x", 4096)))
	}
	snap := hive.record("t")
	events, err := hive.rt.Events(t.Context(), key("t"), before, 1000)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, e := range events {
		size += len(e.Description) + len(e.Extra)
	}
	if n := countEvents(events, "breakpoint_tool_call"); n != 20 || size > 20*3*4096 {
		t.Errorf("%d reports in %d bytes", n, size)
	}
	if slices.Contains(names(events), "task_complete") {
		t.Errorf("events %q", names(events))
	}
	var shown []pending
	if err := json.Unmarshal([]byte(snap.Task.Calls()), &shown); err != nil || len(shown) != 21 {
		t.Errorf("%d calls are shown, %v", len(shown), err)
	}
}

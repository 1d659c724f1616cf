package mailtest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/spec/mail"
)

// TestRefusals: a call that is refused gets its reason as a result at once, and
// the agent finds it in its mail under the subject that names the fault. The
// task goes on (R-015, R-019, R-037, R-039, R-078 to R-081, S-12, S-13, G-09,
// G-35, G-76).
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	to := func(target string) obj { return obj{"target": target, "subject": "s", "body": "b"} }
	for _, c := range []struct {
		name, tool   string
		args         obj
		result, mail string
	}{
		{"outside comm_targets", "send_request", to("vice"), `ERROR DENIED: agent "math" may not write to "vice"`, mail.SubjectInvalidRecipient},
		{"unknown agent", "send_request", to("nobody"), `ERROR DENIED: agent "math" may not write to "nobody"`, mail.SubjectInvalidRecipient},
		{"another swarm", "send_request", to("boss@depot"), `ERROR DENIED: agent "math" may not write to "boss@depot"`, mail.SubjectInvalidRecipient},
		{"the user", "send_response", to(w.me), "ERROR INVALID: agents do not write to the user", mail.SubjectImproperResponseToUser},
		{"no address", "send_request", to("a b"), `ERROR INVALID: error sending message: target "a b"`, mail.SubjectToolCallError},
		{"a subject of the system's", "send_request", obj{"target": "boss", "subject": "::task_complete::", "body": "b"},
			"ERROR INVALID: error sending message: subjects that begin with '::'", mail.SubjectToolCallError},
		{"arguments missing", "send_request", obj{"target": "boss"}, "ERROR INVALID: error in the arguments of send_request", mail.SubjectToolCallError},
		{"arguments too many", "await_message", obj{"until": "noon"}, "ERROR INVALID: error in the arguments of await_message", mail.SubjectToolCallError},
		{"help on an unknown tool", "help", obj{"get_tool_help": []string{"fly"}}, "ERROR INVALID: error in the arguments of help", mail.SubjectToolCallError},
		{"a supervisor's tool", "send_interrupt", to("boss"), `ERROR DENIED: agent "math" is not given the tool send_interrupt`, mail.SubjectToolCallError},
		{"completion without leave", "task_complete", obj{"finish_message": "x"}, `ERROR DENIED: agent "math" is not given the tool task_complete`, mail.SubjectToolCallError},
		{"unknown tool", "mail", obj{"tool": "sing", "args": obj{}}, `ERROR NOT_FOUND: there is no MAIL tool "sing"`, mail.SubjectToolCallError},
		{"a tool for other swarms", "discover_swarms", obj{"discovery_urls": []string{"https://depot.example"}}, `ERROR DENIED: agent "math" is not given the tool discover_swarms`, mail.SubjectToolCallError},
		{"acknowledge a request", "acknowledge_broadcast", obj{}, "ERROR INVALID: improper use of acknowledge_broadcast", mail.SubjectToolCallError},
		{"ignore a request", "ignore_broadcast", obj{}, "ERROR INVALID: improper use of ignore_broadcast", mail.SubjectToolCallError},
		{"nothing to wait for", "await_message", obj{}, "ERROR CONFLICT: no outstanding requests and message queue is empty", mail.SubjectToolCallError},
	} {
		got := w.ask(obj{"task_id": c.name, "body": script("send_request", obj{"target": "math", "subject": "go", "body": script(
			c.tool, c.args, "send_response", obj{"target": "boss", "subject": "r", "body": "{{0}}"})})})
		if !strings.HasPrefix(got, "boss got [r] "+c.result) {
			t.Errorf("%s: answer %q, want %q", c.name, got, c.result)
		}
		rec := w.record(c.name)
		if !slices.Contains(rec.flow(t), "hive>math:"+c.mail) {
			t.Errorf("%s: mail %q lacks %s", c.name, rec.flow(t), c.mail)
		}
		if rec.State != "completed" || !slices.Contains(rec.names(), "agent_error") {
			t.Errorf("%s: %s, events %q", c.name, rec.State, rec.names())
		}
	}
}

// TestSystemMail: what the system sends comes from the swarm's own name, under a
// subject that no agent can use, as a response to the one concerned (R-016, R-079,
//
func TestSystemMail(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	got := w.ask(obj{"task_id": "t", "body": script("await_message", obj{})})
	if got != "boss got [::tool_call_error::] no outstanding requests and message queue is empty" {
		t.Errorf("answer %q", got)
	}
	m := w.record("t").mail(t)[1]
	if from := m.Payload.Sender; from.Type != mail.System || from.Name != "hive" || m.Type != mail.Response || !mail.Reserved(m.Payload.Subject) {
		t.Errorf("system message %+v", m)
	}
}

// TestAfterTheEnd: a turn that has said it waits, or has completed the task, makes
// no more mail (S-13, G-36).
func TestAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	got := w.ask(obj{"task_id": "await", "body": script(
		"send_request", obj{"target": "math", "subject": "s", "body": "b"}, "await_message", obj{}, "task_complete", obj{"finish_message": "early"})})
	if got != "boss got [Re: s] echo: b" {
		t.Errorf("answer %q", got)
	}
	got = w.ask(obj{"task_id": "done", "body": script(
		"task_complete", obj{"finish_message": "first"}, "send_request", obj{"target": "math", "subject": "s", "body": "b"}, "task_complete", obj{"finish_message": "second"})})
	if got != "first" {
		t.Errorf("answer %q", got)
	}
	want := []string{"user>boss:New Message", "boss>all:::task_complete::"}
	if diff := cmp.Diff(want, w.record("done").flow(t)); diff != "" {
		t.Errorf("mail (-want +got)\n%s", diff)
	}
}

// TestAwaitPerTask: an agent may wait only for what can come in its own task: mail
// of another task of the instance does not count (S-13, G-35).
func TestAwaitPerTask(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	w.accept(obj{"task_id": "other", "body": script("send_request", obj{"target": "math", "subject": "s", "body": script("sleep", obj{"ms": 6e5})}, "await_message", obj{})})
	w.eventually("math has mail in the other task", func() bool { return len(w.record("other").mail(t)) == 2 })
	if got := w.ask(obj{"body": script("await_message", obj{})}); !strings.HasPrefix(got, "boss got [::tool_call_error::]") {
		t.Errorf("answer %q", got)
	}
	w.cancel("other")
}

// TestHelp: help answers in the result itself; it makes no mail and ends no task
// (S-10).
func TestHelp(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	got := w.ask(obj{"task_id": "t", "body": script("help", obj{"get_identity": true, "get_tool_help": []string{"await_message"}, "get_full_protocol": true},
		"task_complete", obj{"finish_message": "{{0}}"})})
	for _, part := range []string{"SUCCESS: help string generated", "===== SUMMARY =====", "===== YOUR IDENTITY =====", "Interswarm address: boss@hive",
		"===== TOOL HELP =====", "--- await_message ---", "===== FULL MAIL PROTOCOL SPECIFICATION ====="} {
		if !strings.Contains(got, part) {
			t.Errorf("help lacks %q: %q", part, got)
		}
	}
	rec := w.record("t")
	if len(rec.mail(t)) != 2 || !slices.Contains(rec.names(), "help_called") {
		t.Errorf("events %q", rec.names())
	}
}

// TestFailedTurns: a turn that fails leaves nothing behind but its message and the
// error. Its sender is told; a user by the end of the task.
func TestFailedTurns(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	effects := []any{"send_request", obj{"target": "boss", "subject": "unseen", "body": "b"}}
	for _, c := range []struct {
		probe string
		parts []string
	}{
		{"trap", []string{`agent "math" failed`}},
		{"loop", []string{`agent "math" failed (fuel)`, "[agents.math] limits.fuel"}},
		{"recurse", []string{`agent "math" failed`, "the limit is [agents.math] limits."}},
	} {
		got := w.ask(obj{"task_id": c.probe, "body": script("send_request", obj{"target": "math", "subject": "s", "body": script(append(effects, c.probe, obj{})...)},
			"await_message", obj{})})
		for _, part := range append(c.parts, "boss got [::agent_error::]") {
			if !strings.Contains(got, part) {
				t.Errorf("%s: answer %q lacks %q", c.probe, got, part)
			}
		}
		want := []string{"user>boss:New Message", "boss>math:s", "hive>boss:::agent_error::", "boss>all:::task_complete::"}
		if diff := cmp.Diff(want, w.record(c.probe).flow(t)); diff != "" {
			t.Errorf("%s: mail (-want +got)\n%s", c.probe, diff)
		}
		if got := w.taken(c.probe, "math"); !slices.Contains(got, "s") {
			t.Errorf("%s: the message is not in the history: %q", c.probe, got)
		}
	}
	r := w.post(obj{"task_id": "user", "body": script("trap", obj{})})
	if got := r.response(t); r.subject() != mail.SubjectAgentError || !strings.Contains(got, `agent "boss" failed`) || w.record("user").State != "failed" {
		t.Errorf("a turn that fails on the user's message: %q %q", r.subject(), got)
	}
}

// TestFailureOnSystemMail: a turn that fails on mail of the system, or by an error
// of its own, does not loop: the system cannot answer (R-079, G-34).
func TestFailureOnSystemMail(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	// text answers vice, whom it may not write to: its turn ends with an error.
	r := w.post(obj{"task_id": "t", "body": script("send_request", obj{"target": "vice", "subject": "go", "body": script(
		"send_request", obj{"target": "text", "subject": "s", "body": "b"})})})
	want := []string{"user>boss:New Message", "boss>vice:go", "vice>text:s", "hive>vice:::agent_error::", "vice>all:::task_complete::"}
	if diff := cmp.Diff(want, w.record("t").flow(t)); diff != "" || r.subject() != mail.SubjectTaskComplete {
		t.Errorf("%q, mail (-want +got)\n%s", r.subject(), diff)
	}
}

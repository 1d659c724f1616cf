package mailtest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/spec/mail"
)

// TestOwners: every principal has an instance of its own, which owns and
// contributes to the tasks made in it; one task id in two instances is two tasks
// that know nothing of each other (R-010, R-011, R-017, R-018, R-021, R-027 to to
// S-07, S-08).
func TestOwners(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	for _, c := range []struct {
		token, owner string
		from         mail.Address
	}{
		{alice, "user:alice@hive", mail.Address{Type: mail.User, Name: "alice"}},
		{bob, "user:bob@hive", mail.Address{Type: mail.User, Name: "bob"}},
		{ada, "admin:ada@hive", mail.Address{Type: mail.Admin, Name: "ada"}},
	} {
		if got := w.postAs(c.token, obj{"task_id": "same", "body": c.owner}).response(t); got != "boss got [New Message] "+c.owner {
			t.Errorf("%s: answer %q", c.owner, got)
		}
		rec := w.recordAs(c.token, "same")
		if rec.Owner != c.owner {
			t.Errorf("owner %q, want %q", rec.Owner, c.owner)
		}
		if diff := cmp.Diff([]string{c.owner}, rec.Contributors); diff != "" {
			t.Errorf("contributors (-want +got)\n%s", diff)
		}
		all := rec.mail(t)
		if len(all) != 2 || all[0].Payload.Sender != c.from {
			t.Errorf("%s sees %d messages, the first from %+v", c.owner, len(all), all[0].Payload.Sender)
		}
	}
	w.ask(obj{"task_id": "private", "body": "x"})
	for _, path := range []string{"/task?task_id=private", "/skep/v1/tasks/private", "/skep/v1/tasks/private/history?agent=boss", "/skep/v1/tasks/private/events"} {
		if r := w.do(bob, http.MethodGet, path, ""); r.status != http.StatusNotFound {
			t.Errorf("bob reads %s: %d %s", path, r.status, r.body)
		}
	}
	if r := w.postAs(bob, obj{"task_id": "private", "body": "x", "resume_from": "user_response"}); r.status != http.StatusNotFound {
		t.Errorf("bob goes on with alice's task: %d %s", r.status, r.body)
	}
}

// TestAgentsStartNoTasks: the key of a peer makes no task of its own (R-048,
//
func TestAgentsStartNoTasks(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	if r := w.postAs(depot, obj{"body": "x"}); r.status != http.StatusUnauthorized {
		t.Errorf("a peer posts: %d %s", r.status, r.body)
	}
}

// TestNewTaskIDs: a post without an id starts a task under a fresh one, which the
// caller is told (R-021, S-06).
func TestNewTaskIDs(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	seen := map[string]bool{}
	for range 3 {
		r := w.post(obj{"body": "x"})
		id := r.header.Get("X-MAIL-Task-Id")
		if id == "" || seen[id] || w.record(id).State != "completed" {
			t.Errorf("task id %q after %v", id, seen)
		}
		seen[id] = true
	}
}

// TestEntrypoint: users reach the agents that are made for it, and no others; nor
// may they speak as the system (G-76, S-05).
func TestEntrypoint(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	got := w.ask(obj{"entrypoint": "desk", "task_id": "t", "body": script("send_request", obj{"target": "boss", "subject": "s", "body": "b"})})
	if got != "boss got [s] b" {
		t.Errorf("answer %q", got)
	}
	for _, fields := range []obj{
		{"body": "x", "entrypoint": "math"}, {"body": "x", "entrypoint": "nobody"}, {"body": "x", "entrypoint": "all"},
		{"body": "x", "subject": mail.SubjectTaskComplete},
	} {
		if r := w.post(fields); r.status != http.StatusBadRequest {
			t.Errorf("%v: %d %s", fields, r.status, r.body)
		}
	}
}

// TestAgentNames: a swarm with an agent named all, or with two of one name, does
// not start; which is why an address leads to one agent (R-012, R-015, R-019,
// G-09).
func TestAgentNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"all", "boss", "a@b", "a:b", "a b"} {
		text := strings.Replace(hive, "[agents.desk]", "[agents."+encode(name)+"]", 1)
		if _, err := load(t, write(t, t.TempDir(), text)); err == nil {
			t.Errorf("a swarm with a second agent %q is taken", name)
		}
	}
	if _, err := load(t, write(t, t.TempDir(), hive)); err != nil {
		t.Error(err)
	}
}

// TestProtocolVersion: the host names the protocol it speaks, under both keys
// peers ask for (R-090, S-14, S-22).
func TestProtocolVersion(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	var root struct {
		Version  string
		Protocol string `json:"protocol_version"`
	}
	if err := json.Unmarshal([]byte(w.do(w.token, http.MethodGet, "/", "").body), &root); err != nil {
		t.Fatal(err)
	}
	if root.Version != "1.3" || root.Protocol != "1.3" {
		t.Errorf("versions %+v", root)
	}
}

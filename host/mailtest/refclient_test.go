package mailtest_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/mailtest/refclient"
)

// reference is the reference's client as one of the principals of a world.
func (w *world) reference(key string) *refclient.Client {
	return &refclient.Client{Address: strings.TrimPrefix(w.url, "http://"), Key: key}
}

func debugWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, "", "[server]\ndebug = true\n")
}

// TestReferenceClient: each method of the reference's client that the reference
// has a route for is answered as that client expects (S-14 to S-17, S-20, G-07).
func TestReferenceClient(t *testing.T) {
	t.Parallel()
	w := debugWorld(t)
	ctx, me, admin := t.Context(), w.reference(alice), w.reference(ada)
	id, depot := "test-task-id", "depot-secret"
	post := refclient.Post{Body: "hello", Subject: "New Message", Type: "request", Task: &id}
	for _, c := range []struct {
		name string
		call func() (refclient.Answer, error)
		want refclient.Answer
	}{
		{"ping", func() (refclient.Answer, error) { return w.reference("").Ping(ctx) }, refclient.Answer{"name": "mail", "status": "running", "protocol_version": "1.3", "version": "1.3"}},
		{"get_health", func() (refclient.Answer, error) { return w.reference("").GetHealth(ctx) }, refclient.Answer{"status": "healthy", "swarm_name": "hive"}},
		{"update_health", func() (refclient.Answer, error) { return admin.UpdateHealth(ctx, "degraded") }, refclient.Answer{"status": "degraded"}},
		{"login", func() (refclient.Answer, error) { return w.reference("").Login(ctx, ada) }, refclient.Answer{"id": "ada", "role": "admin"}},
		{"get_whoami", func() (refclient.Answer, error) { return me.GetWhoami(ctx) }, refclient.Answer{"id": "alice", "role": "user", "username": "alice"}},
		{"get_status", func() (refclient.Answer, error) { return me.GetStatus(ctx) }, refclient.Answer{"user_mail_ready": false, "user_task_running": false}},
		{"post_message", func() (refclient.Answer, error) { return me.PostMessage(ctx, post) }, refclient.Answer{"response": "boss got [New Message] hello", "events": nil}},
		{"get_task", func() (refclient.Answer, error) { return me.GetTask(ctx, id) }, refclient.Answer{"task_id": id, "completed": true, "is_running": false, "task_owner": "user:alice@hive"}},
		{"register_swarm", func() (refclient.Answer, error) {
			return admin.RegisterSwarm(ctx, "depot", w.url+"/", &depot, false, refclient.Object{{Name: "a", Value: 1}})
		}, refclient.Answer{"status": "registered", "swarm_name": "depot"}},
		{"dump_swarm", func() (refclient.Answer, error) { return admin.DumpSwarm(ctx) }, refclient.Answer{"status": "dumped", "swarm_name": "hive"}},
		{"send_interswarm_message", func() (refclient.Answer, error) {
			return me.SendInterswarmMessage(ctx, "hello", "u", refclient.Object{{Name: "subject", Value: "s"}, {Name: "targets", Value: []string{"boss@hive"}}, {Name: "msg_type", Value: "request"}})
		}, refclient.Answer{"events": nil}},
	} {
		got, err := c.call()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for key, want := range c.want {
			if diff := cmp.Diff(want, got[key]); diff != "" {
				t.Errorf("%s: %s (-want +got)\n%s", c.name, key, diff)
			}
		}
	}
	if tasks, err := me.GetTasks(ctx); err != nil || tasks[id] == nil || len(tasks) != 2 {
		t.Errorf("get_tasks: %v, %v", tasks, err)
	}
	if swarms, err := w.reference("").GetSwarms(ctx); err != nil || len(swarms["swarms"].([]any)) != 0 {
		t.Errorf("get_swarms: %v, %v", swarms, err)
	}
}

// TestReferenceStream: a stream ends with the answer, and is read by who splits
// it at CRLF CRLF only (S-17).
func TestReferenceStream(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	var names []string
	var last refclient.Event
	p := refclient.Post{Body: "hello\r\n\r\n\u2028 €", Subject: "New Message", Type: "request"}
	err := w.reference(w.token).PostMessageStream(t.Context(), p, func(e refclient.Event) bool {
		names, last = append(names, e.Name), e
		return true
	})
	want := []string{"new_message", "tool_call", "task_complete_call", "new_message", "task_complete"}
	if diff := cmp.Diff(want, names); err != nil || diff != "" {
		t.Fatalf("%v (-want +got)\n%s", err, diff)
	}
	var end struct{ Response, Timestamp string }
	if err := json.Unmarshal([]byte(last.Data), &end); err != nil || end.Response != "boss got [New Message] "+p.Body || end.Timestamp == "" {
		t.Errorf("%s: %v", last.Data, err)
	}
}

// TestReferenceWrappers: what the client sends of mail between swarms is read in
// the form in which it sends it (S-20, G-18).
func TestReferenceWrappers(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	c := w.reference(w.token)
	wrapper := refclient.Object{
		{Name: "message_id", Value: "1c9d8d2f-6f0e-4a39-9f5e-0d2c6a1c7b11"}, {Name: "source_swarm", Value: "hive"}, {Name: "target_swarm", Value: "hive"},
		{Name: "timestamp", Value: "2026-03-01T09:31:00.000000+00:00"},
		{Name: "payload", Value: refclient.Object{
			{Name: "task_id", Value: "wrapped"}, {Name: "request_id", Value: "0f3a7a34-9d0e-4f0c-9a55-6a6a0a3b8f21"},
			{Name: "sender", Value: refclient.Object{{Name: "address_type", Value: "user"}, {Name: "address", Value: "someone"}}},
			{Name: "recipient", Value: refclient.Object{{Name: "address_type", Value: "agent"}, {Name: "address", Value: "boss"}}},
			{Name: "subject", Value: "s"}, {Name: "body", Value: "b"}, {Name: "sender_swarm", Value: nil}, {Name: "recipient_swarm", Value: nil},
			{Name: "routing_info", Value: refclient.Object{}},
		}},
		{Name: "msg_type", Value: "request"}, {Name: "auth_token", Value: "u"}, {Name: "metadata", Value: refclient.Object{}},
		{Name: "task_owner", Value: "user:someone@hive"}, {Name: "task_contributors", Value: []string{"user:someone@hive"}},
	}
	got, err := c.PostInterswarmMessage(t.Context(), wrapper)
	message, _ := got["message"].(map[string]any)
	if err != nil || got["msg_type"] != "response" || message["body"] != "boss got [s] b" || message["task_id"] != "wrapped" {
		t.Errorf("post_interswarm_message: %v, %v", got, err)
	}
	var refused *refclient.Error
	if _, err := c.PostInterswarmResponse(t.Context(), refclient.Object{}); !errors.As(err, &refused) || refused.Status != 410 || !strings.Contains(refused.Body, "/interswarm/back") {
		t.Errorf("post_interswarm_response: %v", err)
	}
	if _, err := c.SendInterswarmMessage(t.Context(), "b", "u", refclient.Object{{Name: "targets", Value: []string{"stock@depot"}}}); !errors.As(err, &refused) || refused.Status != 503 {
		t.Errorf("send_interswarm_message to another swarm: %v", err)
	}
}

// TestReferenceResponses: the answer of the debug route is JSON in a string.
func TestReferenceResponses(t *testing.T) {
	t.Parallel()
	w := debugWorld(t)
	c := w.reference(alice)
	input := []any{refclient.Object{{Name: "role", Value: "user"}, {Name: "content", Value: "hello"}}}
	got, err := c.DebugPostResponses(t.Context(), input, []any{}, refclient.Object{{Name: "kwargs", Value: refclient.Object{}}})
	if err != nil || got["object"] != "response" || got["model"] != "hive" || !strings.Contains(encode(got["output"]), "boss got [New Message] hello") {
		t.Errorf("debug_post_responses: %v, %v", got, err)
	}
	var refused *refclient.Error
	if _, err := sharedWorld(t).reference(alice).DebugPostResponses(t.Context(), input, []any{}, nil); !errors.As(err, &refused) || refused.Status != 404 {
		t.Errorf("without debug: %v", err)
	}
}

// TestReferenceErrors: refusals have the statuses that the client tells apart.
func TestReferenceErrors(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	ctx := t.Context()
	for name, c := range map[string]struct {
		call func() (refclient.Answer, error)
		want int
	}{
		"no key":       {func() (refclient.Answer, error) { return w.reference("").GetWhoami(ctx) }, 401},
		"a wrong key":  {func() (refclient.Answer, error) { return w.reference("").Login(ctx, "nobody") }, 401},
		"a wrong role": {func() (refclient.Answer, error) { return w.reference(alice).UpdateHealth(ctx, "x") }, 401},
		"an agent": {func() (refclient.Answer, error) {
			return w.reference(depot).PostMessage(ctx, refclient.Post{Body: "b", Type: "request"})
		}, 401},
		"no message": {func() (refclient.Answer, error) {
			return w.reference(alice).PostMessage(ctx, refclient.Post{Type: "request"})
		}, 400},
		"no task":       {func() (refclient.Answer, error) { return w.reference(alice).GetTask(ctx, "nothing") }, 404},
		"no definition": {func() (refclient.Answer, error) { return w.reference(ada).LoadSwarm(ctx, "") }, 400},
		"an own name": {func() (refclient.Answer, error) {
			return w.reference(ada).RegisterSwarm(ctx, "hive", "https://hive.example", nil, true, nil)
		}, 400},
	} {
		_, err := c.call()
		var refused *refclient.Error
		if !errors.As(err, &refused) || refused.Status != c.want || !strings.Contains(refused.Body, `{"detail":`) {
			t.Errorf("%s: %v, want %d", name, err, c.want)
		}
	}
}

// TestRegistryOutlivesTheHost: what is registered to last is known after the next
// start, what is volatile is not, and no token is on disk (R-064, R-065, R-070,
// G-07).
func TestRegistryOutlivesTheHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "public = true\n", "")
	secret := "secret-of-the-depot"
	for name, volatile := range map[string]bool{"depot": false, "passing": true} {
		if _, err := w.reference(ada).RegisterSwarm(t.Context(), name, w.url, &secret, volatile, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.swarms(); !slices.Equal(got, []string{"depot", "hive", "passing"}) {
		t.Errorf("before: %q", got)
	}
	w.restart()
	if got := w.swarms(); !slices.Equal(got, []string{"depot", "hive"}) {
		t.Errorf("after: %q", got)
	}
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(w.file), ".skep", "registry.json"))
	if err != nil || strings.Contains(string(raw), secret) || !strings.Contains(string(raw), "${SWARM_AUTH_TOKEN_DEPOT}") {
		t.Errorf("%v: %s", err, raw)
	}
}

// swarms lists the names of GET /swarms.
func (w *world) swarms() (names []string) {
	w.t.Helper()
	got, err := w.reference("").GetSwarms(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range got["swarms"].([]any) {
		names = append(names, s.(map[string]any)["swarm_name"].(string))
	}
	slices.Sort(names)
	return names
}

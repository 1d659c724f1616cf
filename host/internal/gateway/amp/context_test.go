package amp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/state"
	"skep/host/internal/swarm"
)

// shares are the agents of a test: two of acme, one of another realm of the tenant, and one of a
// realm of another tenant.
var shares = []struct{ token, agent, full string }{
	{token, "agent-1", "agent-1@acme"},
	{token, "agent-2", "agent-2@acme"},
	{"rival-token", "agent-1", "agent-1@rival"},
	{"red-token", "agent-1", "agent-1@red"},
}

func newShares(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.admit("rival-token", gateway.Partner{Name: "rival", IDs: []string{"agent*"}})
	red := gatewaytest.Realm("red", "red")
	red.May = gateway.Rights{gateway.MayContexts}
	s.rt.Admit("red-token", red)
	s.rt.AddPartner(gateway.Partner{Name: "red", Tenant: "red", IDs: []string{"agent*"}, May: red.May})
	return s
}

// share lets an agent of [shares] do an operation.
func (s *site) share(t *testing.T, agent int, operation string, payload amptest.Object) amptest.Reply {
	t.Helper()
	all := amptest.Object{"operation": operation}
	maps.Copy(all, payload)
	m := amptest.New("request", shares[agent].agent, "context", all)
	m.Message.Destination.Capability = "context-management"
	return s.send(t, m, "Authorization", "Bearer "+shares[agent].token)
}

// contextIn is the context of a reply that succeeded.
func contextIn(t *testing.T, r amptest.Reply) amptest.Object {
	t.Helper()
	got, _ := wantStatus(t, r, http.StatusOK)["context"].(amptest.Object)
	if got == nil {
		t.Fatalf("no context: %s", r.Text)
	}
	return got
}

func wantNoContext(t *testing.T, r amptest.Reply) {
	t.Helper()
	wantFault(t, r, http.StatusNotFound, "CONTEXT_NOT_FOUND", "")
}

func wantMemory(t *testing.T, what string, got any, want string) {
	t.Helper()
	if text, err := json.Marshal(got); err != nil || string(text) != want {
		t.Errorf("%s is %s, want %s", what, text, want)
	}
}

// TestContexts (M-050 to M-055, M-058, M-060, M-062, V-M26): a context is made, read, changed member by
// member or as a whole, copied and joined; each agent sees its own memory only.
func TestContexts(t *testing.T) {
	t.Parallel()
	s := newShares(t)
	made := contextIn(t, s.share(t, 0, "create", amptest.Object{"context": amptest.Object{
		"session_id": "s-1", "shared_memory": amptest.Object{"a": amptest.Object{"b": 1, "c": 2}, "d": 3},
		"agent_memory":   amptest.Object{"agent-1": amptest.Object{"mine": 1}},
		"access_control": amptest.Object{"read": []string{"agent-2", "agent-1@rival"}, "write": []string{"agent-2"}},
	}}))
	id := fmt.Sprint(made["id"])
	created, err := time.Parse(time.RFC3339, fmt.Sprint(made["created_at"]))
	expires, err2 := time.Parse(time.RFC3339, fmt.Sprint(made["expires_at"]))
	if err != nil || err2 != nil || expires.Sub(created) != time.Hour || made["session_id"] != "s-1" || made["version"] == nil {
		t.Errorf("made %v", made)
	}
	wantMemory(t, "the lineage", made["lineage"], fmt.Sprintf(`{"root_context":%q}`, id))
	changed := contextIn(t, s.share(t, 1, "update", amptest.Object{"context_id": id, "context": amptest.Object{
		"shared_memory": amptest.Object{"a": amptest.Object{"b": nil}, "e": 5}, "agent_memory": amptest.Object{"agent-2": amptest.Object{"mine": 2}},
	}}))
	wantMemory(t, "shared_memory", changed["shared_memory"], `{"a":{"c":2},"d":3,"e":5}`)
	wantMemory(t, "agent_memory", changed["agent_memory"], `{"agent-2":{"mine":2}}`)
	if changed["version"] == made["version"] {
		t.Errorf("the change has left version %v", made["version"])
	}
	wantMemory(t, "agent_memory of another realm", contextIn(t, s.share(t, 2, "get", amptest.Object{"context_id": id}))["agent_memory"], `{}`)
	fork := contextIn(t, s.share(t, 1, "fork", amptest.Object{"context_id": id}))
	wantMemory(t, "agent_memory of the fork", fork["agent_memory"], `{"agent-2":{"mine":2}}`)
	wantMemory(t, "the lineage of the fork", fork["lineage"], fmt.Sprintf(`{"parent_context":%q,"root_context":%q}`, id, id))
	replaced := contextIn(t, s.share(t, 1, "update", amptest.Object{"context_id": fork["id"], "mode": "replace", "context": amptest.Object{"shared_memory": amptest.Object{"d": 4}}}))
	wantMemory(t, "the replaced memory", replaced["shared_memory"], `{"d":4}`)
	r := s.share(t, 1, "merge", amptest.Object{"source_ids": []any{id, fork["id"]}})
	merged := contextIn(t, r)
	wantMemory(t, "the merged memory", merged["shared_memory"], `{"a":{"c":2},"d":4,"e":5}`)
	wantMemory(t, "the conflicts", r.Message.Message.Payload["metadata"], `{"conflicts":["/d"]}`)
	wantMemory(t, "the merged lineage", merged["lineage"], fmt.Sprintf(`{"merged_from":[%q,%q],"parent_context":%q,"root_context":%q}`, id, fork["id"], id, id))
}

// TestContextMerge (M-061, V-M30): of several contexts the last value of a member counts, and each
// that differs is told once for each source that changes it; the first end is the end.
func TestContextMerge(t *testing.T) {
	t.Parallel()
	s := newShares(t)
	var ids []any
	for i, memory := range []amptest.Object{
		{"a": []int{1}, "o": amptest.Object{"x": 1, "same": 0}},
		{"a": []int{2}, "o": amptest.Object{"x": 2, "same": 0, "y/z": 1}},
		{"a": 3, "o": amptest.Object{"y/z": 2}},
	} {
		ends := time.Now().Add(time.Duration(10-i) * time.Minute).UTC().Truncate(time.Second)
		made := contextIn(t, s.share(t, 0, "create", amptest.Object{"context": amptest.Object{"shared_memory": memory, "expires_at": ends.Format(time.RFC3339)}}))
		ids = append(ids, made["id"])
		if i == 2 {
			r := s.share(t, 0, "merge", amptest.Object{"source_ids": ids})
			merged := contextIn(t, r)
			wantMemory(t, "the memory", merged["shared_memory"], `{"a":3,"o":{"same":0,"x":2,"y/z":2}}`)
			wantMemory(t, "what differs", r.Message.Message.Payload["metadata"], `{"conflicts":["/a","/o/x","/a","/o/y~1z"]}`)
			if merged["expires_at"] != ends.Format(time.RFC3339) {
				t.Errorf("it ends %v, want %v", merged["expires_at"], ends)
			}
		}
	}
	wantFault(t, s.share(t, 0, "merge", amptest.Object{"source_ids": ids[:1]}), 400, "INVALID_SCHEMA", "MALFORMED")
	wantNoContext(t, s.share(t, 0, "merge", amptest.Object{"source_ids": []any{ids[0], "acme:other"}}))
}

// TestContextAccess (M-057, D-M12, V-M27): what a writer, a reader, another agent, another realm
// and another tenant may do, each operation alone.
func TestContextAccess(t *testing.T) {
	t.Parallel()
	s := newShares(t)
	for name, c := range map[string]struct {
		access amptest.Object
		// can are the operations of agent 1 and 2 of [shares] that succeed; the third is of
		// another tenant.
		can [2]string
	}{
		"none":        {amptest.Object{}, [2]string{"", ""}},
		"read":        {amptest.Object{"read": []string{"agent-2"}}, [2]string{"get fork merge", ""}},
		"write":       {amptest.Object{"write": []string{"agent-2"}}, [2]string{"get fork merge update", ""}},
		"other realm": {amptest.Object{"read": []string{"agent-1@rival"}}, [2]string{"", "get fork merge"}},
		"whole realm": {amptest.Object{"write": []string{"*@rival"}}, [2]string{"", "get fork merge update"}},
		"all":         {amptest.Object{"read": []string{"*"}}, [2]string{"get fork merge", "get fork merge"}},
		"all write":   {amptest.Object{"write": []string{"*"}}, [2]string{"get fork merge update", "get fork merge update"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := contextIn(t, s.share(t, 0, "create", amptest.Object{"context": amptest.Object{"access_control": c.access}}))["id"]
			for agent := 1; agent < 4; agent++ {
				may := ""
				if agent < 3 {
					may = c.can[agent-1]
				}
				own := contextIn(t, s.share(t, agent, "create", nil))["id"]
				for operation, payload := range map[string]amptest.Object{
					"get": {}, "fork": {}, "update": {"context": amptest.Object{"shared_memory": amptest.Object{"x": 1}}}, "merge": {"source_ids": []any{own, id}},
				} {
					if operation != "merge" {
						payload["context_id"] = id
					}
					r := s.share(t, agent, operation, payload)
					switch {
					case strings.Contains(may, operation):
						contextIn(t, r)
					case may == "":
						wantNoContext(t, r)
					default:
						wantFault(t, r, http.StatusForbidden, "AUTHENTICATION_FAILED", "FORBIDDEN")
					}
				}
			}
		})
	}
}

// TestContextWiden (M-057): the copy of a context that its maker may only read gives it to none
// who may not read it; the owner alone changes who has access.
func TestContextWiden(t *testing.T) {
	t.Parallel()
	s := newShares(t)
	id := contextIn(t, s.share(t, 0, "create", amptest.Object{"context": amptest.Object{"access_control": amptest.Object{"read": []string{"agent-2"}}}}))["id"]
	fork := func(agent int, list ...string) amptest.Reply {
		return s.share(t, agent, "fork", amptest.Object{"context_id": id, "context": amptest.Object{"access_control": amptest.Object{"read": list}}})
	}
	for _, wider := range []string{"*", "*@acme", "agent-3", "agent-1@rival"} {
		wantFault(t, fork(1, wider), http.StatusForbidden, "AUTHENTICATION_FAILED", "FORBIDDEN")
	}
	narrow := contextIn(t, fork(1, "agent-1"))["id"]
	own := contextIn(t, fork(0, "*"))["id"]
	widen := func(agent int, id any) amptest.Reply {
		return s.share(t, agent, "update", amptest.Object{"context_id": id, "context": amptest.Object{"access_control": amptest.Object{"read": []string{"*"}}}})
	}
	wantFault(t, widen(1, narrow), http.StatusForbidden, "AUTHENTICATION_FAILED", "FORBIDDEN")
	second := contextIn(t, s.share(t, 1, "fork", amptest.Object{"context_id": narrow}))["id"]
	wantFault(t, widen(1, second), http.StatusForbidden, "AUTHENTICATION_FAILED", "FORBIDDEN")
	contextIn(t, widen(0, own))
	mixed := s.share(t, 1, "merge", amptest.Object{"source_ids": []any{narrow, id}, "context": amptest.Object{"access_control": amptest.Object{"read": []string{"agent-1@rival"}}}})
	wantFault(t, mixed, http.StatusForbidden, "AUTHENTICATION_FAILED", "FORBIDDEN")
	if _, text, _ := mixed.Message.Fault(); strings.Contains(text, fmt.Sprint(narrow)) {
		t.Errorf("its writer may not write %s: %s", narrow, text)
	}
	wantFault(t, s.share(t, 1, "update", amptest.Object{"context_id": id, "context": amptest.Object{"access_control": amptest.Object{}}}), http.StatusForbidden, "AUTHENTICATION_FAILED", "FORBIDDEN")
	contextIn(t, s.share(t, 0, "update", amptest.Object{"context_id": id, "context": amptest.Object{"access_control": amptest.Object{}}}))
	for _, lost := range []any{id, narrow, second} {
		wantNoContext(t, s.share(t, 1, "get", amptest.Object{"context_id": lost}))
	}
	contextIn(t, s.share(t, 0, "get", amptest.Object{"context_id": narrow}))
	contextIn(t, s.share(t, 2, "get", amptest.Object{"context_id": own}))
}

// TestContextReader (M-057, M-058, M-060): the own memory of a reader neither changes the version that writers
// expect nor takes their space, and is bounded for each realm.
func TestContextReader(t *testing.T) {
	t.Parallel()
	s := newShares(t)
	made := contextIn(t, s.share(t, 0, "create", amptest.Object{"context": amptest.Object{"access_control": amptest.Object{"read": []string{"*"}}}}))
	remember := func(agent, size int) amptest.Reply {
		return s.share(t, agent, "update", amptest.Object{"context_id": made["id"], "context": amptest.Object{
			"agent_memory": amptest.Object{shares[agent].agent: strings.Repeat("x", size)},
		}})
	}
	if seen := contextIn(t, remember(1, 10<<10)); seen["version"] != made["version"] {
		t.Errorf("a reader has changed version %v to %v", made["version"], seen["version"])
	}
	contextIn(t, remember(2, 15<<10))
	wantFault(t, remember(1, 17<<10), http.StatusRequestEntityTooLarge, "INVALID_SCHEMA", "TOO_LARGE")
	wantFault(t, remember(0, 7<<10), http.StatusRequestEntityTooLarge, "INVALID_SCHEMA", "TOO_LARGE")
	written := contextIn(t, s.share(t, 0, "update", amptest.Object{
		"context_id": made["id"], "if_version": made["version"], "context": amptest.Object{"shared_memory": amptest.Object{"x": strings.Repeat("x", 60<<10)}},
	}))
	if written["version"] == made["version"] {
		t.Errorf("a change has left version %v", written["version"])
	}
}

// TestContextVersion (M-060, V-M31): of writers that expect the same version one succeeds, and the
// others get the version that there is.
func TestContextVersion(t *testing.T) {
	t.Parallel()
	s := newShares(t)
	made := contextIn(t, s.share(t, 0, "create", nil))
	const writers = 8
	replies := make([]amptest.Reply, writers)
	var all sync.WaitGroup
	for i := range writers {
		m := amptest.New("request", "agent-1", "context", amptest.Object{
			"operation": "update", "context_id": made["id"], "if_version": made["version"], "context": amptest.Object{"shared_memory": amptest.Object{"by": i}},
		})
		all.Go(func() {
			r, err := s.Send(m)
			if err != nil {
				t.Error(err)
			}
			replies[i] = r
		})
	}
	all.Wait()
	var won any
	for i, r := range replies {
		if r.Status == http.StatusOK {
			if won != nil {
				t.Error("two writers have changed one version")
			}
			won = i
			continue
		}
		wantFault(t, r, http.StatusConflict, "INVALID_SCHEMA", "VERSION_CONFLICT")
		if r.Message.Details()["version"] == made["version"] {
			t.Errorf("the version that there is: %s", r.Text)
		}
	}
	got := contextIn(t, s.share(t, 0, "get", amptest.Object{"context_id": made["id"]}))
	wantMemory(t, "shared_memory", got["shared_memory"], fmt.Sprintf(`{"by":%v}`, won))
}

// TestContextEnds (M-059, V-M29): after its end a context is unknown to every operation. A copy of
// it by a writer goes on, one by a reader ends with it.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	s := newShares(t)
	at := time.Now().Add(3 * time.Second).UTC()
	id := contextIn(t, s.share(t, 0, "create", amptest.Object{"context": amptest.Object{"expires_at": at.Format(time.RFC3339Nano), "access_control": amptest.Object{"read": []string{"agent-2"}}}}))["id"]
	copied := contextIn(t, s.share(t, 1, "fork", amptest.Object{"context_id": id}))["id"]
	fork := contextIn(t, s.share(t, 0, "fork", amptest.Object{"context_id": id}))["id"]
	deadline := time.Now().Add(time.Minute)
	for s.share(t, 0, "get", amptest.Object{"context_id": id}).Status == http.StatusOK {
		if time.Now().After(deadline) {
			t.Fatal("the context does not end")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if time.Now().Before(at) {
		t.Error("it has ended early")
	}
	wantNoContext(t, s.share(t, 1, "get", amptest.Object{"context_id": copied}))
	for operation, payload := range map[string]amptest.Object{
		"get": {"context_id": id}, "fork": {"context_id": id}, "merge": {"source_ids": []any{fork, id}},
		"update": {"context_id": id, "context": amptest.Object{"expires_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}},
	} {
		t.Run(operation, func(t *testing.T) { wantNoContext(t, s.share(t, 0, operation, payload)) })
	}
	contextIn(t, s.share(t, 0, "get", amptest.Object{"context_id": fork}))
}

// TestContextRefused (M-051, M-056, M-058): what an operation cannot do is refused with why.
func TestContextRefused(t *testing.T) {
	t.Parallel()
	s := newShares(t)
	id := contextIn(t, s.share(t, 0, "create", amptest.Object{"context": amptest.Object{"access_control": amptest.Object{"write": []string{"agent-2"}}}}))["id"]
	with := func(values amptest.Object) amptest.Object {
		return amptest.Object{"context_id": id, "context": values}
	}
	for name, c := range map[string]struct {
		operation    string
		payload      amptest.Object
		status       int
		code, reason string
	}{
		"no operation":      {"", nil, 400, "INVALID_SCHEMA", "MALFORMED"},
		"unknown operation": {"delete", with(nil), 400, "INVALID_SCHEMA", "MALFORMED"},
		"own id":            {"create", with(nil), 400, "INVALID_SCHEMA", "MALFORMED"},
		"no id":             {"get", nil, 404, "CONTEXT_NOT_FOUND", ""},
		"unknown id":        {"get", amptest.Object{"context_id": "acme:none"}, 404, "CONTEXT_NOT_FOUND", ""},
		"no end":            {"update", with(amptest.Object{"expires_at": "soon"}), 400, "INVALID_SCHEMA", "MALFORMED"},
		"past":              {"update", with(amptest.Object{"expires_at": "2020-01-01T00:00:00Z"}), 400, "INVALID_SCHEMA", "MALFORMED"},
		"late":              {"update", with(amptest.Object{"expires_at": time.Now().Add(25 * time.Hour).Format(time.RFC3339)}), 400, "INVALID_SCHEMA", "MALFORMED"},
		"another's memory":  {"update", with(amptest.Object{"agent_memory": amptest.Object{"agent-1": amptest.Object{}}}), 403, "AUTHENTICATION_FAILED", "FORBIDDEN"},
		"mode":              {"update", amptest.Object{"context_id": id, "mode": "json-patch"}, 400, "INVALID_SCHEMA", "MALFORMED"},
		"large":             {"update", with(amptest.Object{"shared_memory": amptest.Object{"x": strings.Repeat("x", 65<<10)}}), 413, "INVALID_SCHEMA", "TOO_LARGE"},
		"no entry":          {"create", amptest.Object{"context": amptest.Object{"access_control": amptest.Object{"read": []string{""}}}}, 400, "INVALID_SCHEMA", "MALFORMED"},
		"many entries":      {"create", amptest.Object{"context": amptest.Object{"access_control": amptest.Object{"read": make([]string, 101)}}}, 413, "INVALID_SCHEMA", "TOO_LARGE"},
	} {
		t.Run(name, func(t *testing.T) { wantFault(t, s.share(t, 1, c.operation, c.payload), c.status, c.code, c.reason) })
	}
	m := amptest.New("request", "agent-1", "context", amptest.Object{"operation": "get"})
	m.Message.Destination.Capability = "sing"
	wantFault(t, s.send(t, m), 404, "CAPABILITY_NOT_FOUND", "")
	wantMemory(t, "what was refused has left", contextIn(t, s.share(t, 0, "get", with(nil)))["shared_memory"], `{}`)
}

// TestContextRepeat (M-051): a repeat of the message that made a context makes no second one.
func TestContextRepeat(t *testing.T) {
	t.Parallel()
	s := newShares(t)
	m := amptest.New("request", "agent-1", "context", amptest.Object{"operation": "create"})
	if one, two := contextIn(t, s.send(t, m)), contextIn(t, s.send(t, m)); one["id"] != two["id"] || one["version"] != two["version"] {
		t.Errorf("made %v and %v", one["id"], two["id"])
	}
	m.Message.Source.AgentID = "agent-2"
	wantNoContext(t, s.send(t, m))
}

// TestContextEvent (M-037, M-063, V-M04): the document's event makes the context of its session,
// changes it, and reaches our agents that may read it; a request may name a context
// that its sender may read.
func TestContextEvent(t *testing.T) {
	t.Parallel()
	s := newShares(t)
	came := make(chan string, 10)
	s.expose("reader", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		came <- turn.Ask.Body
		return gateway.Answer{}
	})
	event := func(memory amptest.Object, read ...string) amptest.Message {
		return amptest.New("event", "agent-1", "", amptest.Object{"event_type": "context_update", "context": amptest.Object{
			"session_id": "shared-session-123", "shared_memory": memory, "access_control": amptest.Object{"read": append([]string{"agent-2"}, read...), "write": []string{"agent-1"}},
		}})
	}
	first := event(amptest.Object{"user_preferences": amptest.Object{}})
	if r := s.send(t, first); r.Status != http.StatusAccepted {
		t.Fatalf("got %d %s", r.Status, r.Text)
	}
	if r := s.send(t, event(amptest.Object{"task_history": []string{"one"}}, "reader@hive")); r.Status != http.StatusAccepted {
		t.Fatalf("got %d %s", r.Status, r.Text)
	}
	if text := <-came; !strings.Contains(text, "task_history") {
		t.Errorf("the reader was told %s", text)
	}
	id := onlyContext(t, s)
	got := contextIn(t, s.share(t, 1, "get", amptest.Object{"context_id": id}))
	wantMemory(t, "shared_memory", got["shared_memory"], `{"task_history":["one"],"user_preferences":{}}`)
	other := event(amptest.Object{"x": 1})
	other.Message.Source.AgentID = "agent-2"
	wantFault(t, s.send(t, other), http.StatusForbidden, "AUTHENTICATION_FAILED", "FORBIDDEN")
	ask := amptest.Mail("agent-2", "echo", "hello")
	ask.Message.Payload["context"] = amptest.Object{"context_id": id}
	wantText(t, s.send(t, ask), "hello")
	ask = amptest.Mail("agent-3", "echo", "hello")
	ask.Message.Payload["context"] = amptest.Object{"context_id": id}
	wantNoContext(t, s.send(t, ask))
	ask.Message.Payload["context"] = amptest.Object{"session_id": "shared-session-123"}
	wantText(t, s.send(t, ask), "hello")
}

// onlyContext is the id of the one context of acme.
func onlyContext(t *testing.T, s *site) string {
	t.Helper()
	list, err := s.rt.State().List(t.Context(), state.Key{Tenant: "default", Gateway: "amp", Realm: "acme", Kind: "context"}, state.Key{}, 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d contexts, %v", len(list), err)
	}
	return "acme:" + list[0].Key.Name
}

// TestContextVerbs (M-056, G-060): our agents share contexts with a partner's agents by the
// verbs of the gateway; a repeat of the call makes no second context.
func TestContextVerbs(t *testing.T) {
	t.Parallel()
	s := newShares(t)
	p, _ := s.rt.Partner("acme")
	act := func(hive, key, verb string, args amptest.Object) (amptest.Object, error) {
		t.Helper()
		text, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := s.g.Act(t.Context(), p, gateway.Act{Verb: verb, Key: key, Task: swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "default", Swarm: hive}, Task: "t"}, Args: text})
		var result struct{ Context amptest.Object }
		if err == nil {
			err = json.Unmarshal(raw, &result)
		}
		return result.Context, err
	}
	args := amptest.Object{"shared_memory": amptest.Object{"a": 1}, "own_memory": amptest.Object{"mine": 1}, "write": []string{"agent-1"}, "expires_in": 600}
	made, err := act("hive", "key-1", "context_create", args)
	again, againErr := act("hive", "key-1", "context_create", args)
	if err != nil || againErr != nil || made["id"] != again["id"] || made["owner"] != "*@hive" {
		t.Fatalf("made %v, %v and %v, %v", made, err, again, againErr)
	}
	id := made["id"]
	seen := contextIn(t, s.share(t, 0, "update", amptest.Object{"context_id": id, "context": amptest.Object{"shared_memory": amptest.Object{"b": 2}}}))
	wantMemory(t, "agent_memory of the partner", seen["agent_memory"], `{}`)
	wantNoContext(t, s.share(t, 1, "get", amptest.Object{"context_id": id}))
	got, err := act("hive", "key-2", "context_get", amptest.Object{"context": id})
	if err != nil {
		t.Fatal(err)
	}
	wantMemory(t, "shared_memory", got["shared_memory"], `{"a":1,"b":2}`)
	wantMemory(t, "own memory", got["agent_memory"], `{"hive":{"mine":1}}`)
	for name, c := range map[string]struct {
		hive, verb, want string
		args             amptest.Object
	}{
		"another swarm": {"other", "context_get", "CONTEXT_NOT_FOUND", amptest.Object{"context": id}},
		"version":       {"hive", "context_update", "VERSION_CONFLICT", amptest.Object{"context": id, "if_version": 999}},
		"unknown verb":  {"hive", "sing", "no verb", amptest.Object{}},
		"other form":    {"hive", "context_get", "form", amptest.Object{"context": 1}},
	} {
		if _, err := act(c.hive, "key-3", c.verb, c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := act("hive", "key-4", "context_fork", amptest.Object{"context": id}); err != nil {
		t.Error(err)
	}
	if _, err := act("hive", "key-5", "context_merge", amptest.Object{"sources": []any{id, id}}); err != nil {
		t.Error(err)
	}
}

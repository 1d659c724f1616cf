package federation_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/mailtest/refpeer"
)

// forged is what an attacker sends. Zero members are as in an honest answer of
// beta's analyst to hive's boss in task T.
type forged struct {
	path, key, source, target, kind string
	id, task, owner, time           string
	sender, senderType, to, subject string
	body                            string
	contributors                    []string
	hop                             string
	raw                             string
	method                          string
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// wrapper is the message's text.
func (f forged) wrapper() string {
	if f.raw != "" {
		return f.raw
	}
	source, owner := orDefault(f.source, "beta"), orDefault(f.owner, "user:alice@hive")
	contributors := f.contributors
	if contributors == nil {
		contributors = []string{owner, "swarm:hive@" + source}
	}
	raw, _ := json.Marshal(map[string]any{"message": map[string]any{ // maps of texts always encode
		"message_id": orDefault(f.id, "1c9d8d2f-6f0e-4a39-9f5e-000000000001"), "source_swarm": source, "target_swarm": orDefault(f.target, "hive"),
		"timestamp": orDefault(f.time, "2026-11-20T15:52:40.084847+00:00"), "msg_type": orDefault(f.kind, "response"), "auth_token": "", "metadata": map[string]any{},
		"task_owner": owner, "task_contributors": contributors,
		"payload": map[string]any{
			"task_id": orDefault(f.task, "T"), "request_id": "0f3a7a34-9d0e-4f0c-9a55-6a6a0a3b8f21", "subject": orDefault(f.subject, "Re: s"), "body": orDefault(f.body, "forged"),
			"sender":    map[string]string{"address_type": orDefault(f.senderType, "agent"), "address": orDefault(f.sender, "analyst@"+source)},
			"recipient": map[string]string{"address_type": "agent", "address": orDefault(f.to, "boss@hive")},
		},
	}})
	return string(raw)
}

// send hands it in.
func (f forged) send(t *testing.T, s *hosttest.Site) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), orDefault(f.method, http.MethodPost), "http://"+s.Addr()+orDefault(f.path, "/interswarm/back"), strings.NewReader(f.wrapper()))
	if err != nil {
		t.Fatal(err)
	}
	if f.hop != "" {
		req.Header.Set("X-Mail-Hop", f.hop)
	}
	switch f.key {
	case "none":
	default:
		req.Header.Set("Authorization", "Bearer "+orDefault(f.key, hosttest.PeerKey("beta", "hive")))
	}
	return answerOf(t, req)
}

// hijacks are attempts at a task of alice, on which beta works and gamma does not,
// with what the host answers and what its audit log says.
var hijacks = map[string]struct {
	forged
	status int
	says   string
}{
	"a peer's name under another's key":   {forged{key: hosttest.PeerKey("gamma", "hive")}, 401, "does not speak for the swarm"},
	"another's name under the own key":    {forged{source: "gamma"}, 401, "does not speak for the swarm"},
	"a task one has no part in":           {forged{key: hosttest.PeerKey("gamma", "hive"), source: "gamma"}, 401, "swarm 'gamma' takes no part in task 'T'"},
	"a task of the host alone":            {forged{task: "local"}, 401, "swarm 'beta' takes no part in task 'local'"},
	"a task that is not":                  {forged{task: "none"}, 404, "there is no task 'none'"},
	"another owner":                       {forged{owner: "user:eve@hive"}, 404, "there is no task 'T'"},
	"another owner of a known task":       {forged{owner: "user:eve@beta", contributors: []string{"user:eve@beta", "user:alice@hive", "swarm:hive@beta"}}, 401, "swarm 'beta' takes no part in task 'T'"},
	"another user's instance":             {forged{contributors: []string{"user:op@hive", "user:alice@hive", "swarm:hive@beta"}}, 404, "there is no task 'T'"},
	"another tenant's instance":           {forged{contributors: []string{"user:acme/alice@hive", "user:alice@hive", "swarm:hive@beta"}}, 404, "there is no task 'T'"},
	"a role that is none":                 {forged{contributors: []string{"root:alice@hive", "user:alice@hive", "swarm:hive@beta"}}, 400, "invalid role: root"},
	"contributors without the owner":      {forged{contributors: []string{"swarm:hive@beta"}}, 400, "must contain the 'task_owner'"},
	"contributors without the caller":     {forged{contributors: []string{"user:alice@hive"}}, 401, "the swarm that calls is not among the contributors"},
	"no contributors":                     {forged{contributors: []string{}}, 400, "must contain the 'task_owner'"},
	"an agent of the host as sender":      {forged{sender: "math@hive"}, 401, "the sender is not of the swarm that calls"},
	"a third swarm's agent as sender":     {forged{sender: "analyst@gamma"}, 401, "the sender is not of the swarm that calls"},
	"the host's system as sender":         {forged{senderType: "system", sender: "hive"}, 401, "the sender is not of the swarm that calls"},
	"a user as sender":                    {forged{senderType: "user", sender: "alice"}, 400, "the sender must be an agent"},
	"an agent in the system's words":      {forged{subject: "::router_error::"}, 400, "reserved for the system"},
	"another target":                      {forged{target: "depot"}, 400, "must be 'hive'"},
	"a recipient elsewhere":               {forged{to: "math@gamma"}, 400, "no recipient is an agent"},
	"an agent that is not":                {forged{to: "root@hive"}, 404, "there is no agent 'root'"},
	"a forward of the host's own task":    {forged{path: "/interswarm/forward", kind: "request"}, 400, "the task belongs to swarm 'hive'"},
	"a circle":                            {forged{path: "/interswarm/forward", kind: "request", owner: "user:u@beta", task: "F", hop: "5"}, 400, "handed on 5 times"},
	"hops that are none":                  {forged{hop: "-1"}, 400, "X-MAIL-Hop"},
	"a time that is none":                 {forged{time: "yesterday"}, 400, "timestamp"},
	"a type that is none":                 {forged{kind: "buffered"}, 400, "msg_type"},
	"too much":                            {forged{body: strings.Repeat("x", 2<<20)}, 413, "larger than"},
	"too deep":                            {forged{raw: `{"message":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}"}, 400, "deep"},
	"no JSON":                             {forged{raw: `{"message":`}, 400, "JSON"},
	"a user's key":                        {forged{key: hosttest.AliceKey}, 401, "invalid role"},
	"a user's key on forward":             {forged{key: hosttest.AliceKey, path: "/interswarm/forward"}, 401, "invalid role"},
	"an operator's key":                   {forged{key: hosttest.OperatorKey}, 401, "invalid role"},
	"no key":                              {forged{key: "none"}, 401, "no API key provided"},
	"a wrong key":                         {forged{key: "a-key-of-nobody-at-all"}, 401, "invalid API key"},
	"a peer's key on /message":            {forged{path: "/message", raw: `{"body":"x"}`}, 401, "invalid role"},
	"a peer's key on the task":            {forged{method: http.MethodGet, path: "/task?task_id=T", raw: " "}, 401, "invalid role"},
	"a peer's key on the task's history":  {forged{method: http.MethodGet, path: "/skep/v1/tasks/T/history?agent=boss", raw: " "}, 401, "invalid role"},
	"a peer's key on the task's end":      {forged{path: "/skep/v1/tasks/T/cancel", raw: " "}, 401, "invalid role"},
	"a peer's key on /swarms":             {forged{path: "/swarms", raw: `{"name":"beta","base_url":"http://127.0.0.1:1"}`}, 401, "invalid role"},
	"a peer's key on /interswarm/message": {forged{path: "/interswarm/message", raw: `{"body":"x","user_token":"t","targets":["boss"]}`}, 401, "invalid role"},
}

// TestHijack_G70 makes every attempt at a host whose task waits for beta. Each is
// refused with its status and a line in the audit log, none leaves a trace in the
// task, and the honest answer still ends it (R-049, R-083, R-084, R-088, G-42, G-70).
func TestHijack_G70(t *testing.T) {
	t.Parallel()
	p := attackedPair(t)
	boss := func() int { return len(history(t, p.local, "T", "boss")) }
	before := boss()
	for _, name := range slices.Sorted(maps.Keys(hijacks)) {
		c := hijacks[name]
		if status, answer := c.send(t, p.local); status != c.status {
			t.Errorf("%s: %d %s, want %d", name, status, answer, c.status)
		} else if !strings.Contains(answer, c.says) {
			t.Errorf("%s: %s does not say %q", name, answer, c.says)
		}
	}
	if after := boss(); after != before {
		t.Errorf("boss's history has %d entries, had %d", after, before)
	}
	for name, c := range hijacks {
		hosttest.Eventually(t, "a line for "+name+": "+c.says, func() bool { return len(p.local.Audited(c.says)) > 0 })
	}
	p.sendHonest("1c9d8d2f-6f0e-4a39-9f5e-000000000002", "Re: s", "two in bin 9")
	if got := p.waitEnded("T").Task.Contributors; !slices.Equal(got, []string{"user:alice@hive", "swarm:hive@beta"}) {
		t.Errorf("contributors %q", got)
	}
	if task, err := p.local.As(hosttest.AliceKey).Task(t.Context(), "T"); err != nil || task.Answer != "boss got [Re: s] two in bin 9" {
		t.Errorf("task %+v, %v", task, err)
	}
}

// attackedPair is a host with a task of alice that waits for beta's analyst, and one
// that is hers alone.
func attackedPair(t *testing.T) *pair {
	t.Helper()
	p := newPair(t, refpeer.Options{}, "gamma")
	p.ask(t, "hive", "local", "hello")
	if _, err := p.local.As(hosttest.AliceKey).PostAsync(t.Context(), client.Post{Task: "T", Subject: "q", Body: hosttest.RequestOf("analyst@beta", "x")}); err != nil {
		t.Fatal(err)
	}
	p.wantExchanges("hive> forward request [s] 200")
	hosttest.Eventually(t, "the host knows that its letter has arrived", func() bool {
		task, err := p.local.As(hosttest.AliceKey).Task(t.Context(), "T")
		return err == nil && slices.Contains(task.Contributors, "swarm:hive@beta")
	})
	return p
}

// sendHonest is beta's own answer.
func (p *pair) sendHonest(id, subject, body string) {
	p.t.Helper()
	if status, answer := (forged{id: id, subject: subject, body: body}).send(p.t, p.local); status != 200 {
		p.t.Errorf("the honest answer: %d %s", status, answer)
	}
}

// TestReplay: what has been taken is taken once, and its id serves no other message
// and no other task.
func TestReplay(t *testing.T) {
	t.Parallel()
	p := attackedPair(t)
	const id = "1c9d8d2f-6f0e-4a39-9f5e-000000000003"
	for _, body := range []string{"first", "first"} {
		status, answer := (forged{id: id, kind: "request", to: "math@hive", subject: "again", body: body}).send(t, p.local)
		if want := `"local_runner":"user:alice@hive"`; status != 200 || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	status, answer := (forged{id: id, kind: "request", to: "math@hive", subject: "again", body: "changed"}).send(t, p.local)
	if status != 409 || !strings.Contains(answer, "was used for another message") {
		t.Errorf("changed: %d %s", status, answer)
	}
	status, answer = (forged{id: id, task: "local"}).send(t, p.local)
	if status != 409 {
		t.Errorf("in another task: %d %s", status, answer)
	}
	p.wantExchanges("hive> forward request [s] 200", "hive> back response [Re: again] 200")
	if n := strings.Count(fmt.Sprint(history(t, p.local, "T", "math")), `"again"`); n != 1 {
		t.Errorf("math got it %d times", n)
	}
	hosttest.Eventually(t, "a line for the id's second use", func() bool { return len(p.local.Audited("was used in another task")) == 1 })
}

// A contributor whose request is answered cannot end the task, nor make others or
// local users part of it that end it.
func TestContributorCannotEnd_R035(t *testing.T) {
	t.Parallel()
	p := newPair(t, refpeer.Options{Act: answerRequest}, "gamma")
	p.links["gamma"].setTarget("")
	math := hosttest.Script(hosttest.Step{"send_request", hosttest.Args{"target": "analyst@beta", "subject": "s1", "body": "x"}}, hosttest.Step{"send_request", hosttest.Args{"target": "analyst@gamma", "subject": "s2", "body": "x"}})
	body := hosttest.Script(hosttest.Step{"send_request", hosttest.Args{"target": "math", "subject": "s", "body": math}}, hosttest.Step{"await_message", hosttest.Args{}})
	if _, err := p.local.As(hosttest.AliceKey).PostAsync(t.Context(), client.Post{Task: "T", Body: body}); err != nil {
		t.Fatal(err)
	}
	p.wantExchanges("hive> forward request [s1] 200", "beta> back response [Re: s1] 200")
	all := []string{"user:alice@hive", "swarm:hive@beta", "user:op@hive", "swarm:hive@gamma"}
	for i, c := range []forged{
		{subject: "::task_complete::", contributors: all},
		{subject: "::task_complete::", contributors: all, to: "math@hive", senderType: "system", sender: "beta"},
		{subject: "::agent_error::", senderType: "system", sender: "beta", to: "math@hive"},
	} {
		c.id = fmt.Sprintf("1c9d8d2f-6f0e-4a39-9f5e-00000000001%d", i)
		if status, answer := c.send(t, p.local); status != 200 {
			t.Errorf("%+v: %d %s", c, status, answer)
		}
	}
	task, err := p.local.As(hosttest.AliceKey).Record(t.Context(), "T")
	if err != nil || task.State != "running" || slices.Contains(task.Contributors, "user:op@hive") {
		t.Errorf("the task is %s, of %q, %v", task.State, task.Contributors, err)
	}
	ignored := 0
	for _, e := range task.Events {
		if e.Name == "interswarm_message_ignored" {
			ignored++
		}
	}
	if ignored != 3 {
		t.Errorf("%d messages were ignored, want 3", ignored)
	}
}

func history(t *testing.T, s *hosttest.Site, task, agent string) (entries []string) {
	t.Helper()
	h, err := s.As(hosttest.AliceKey).History(t.Context(), task, agent, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range h.Entries {
		entries = append(entries, string(e))
	}
	return entries
}

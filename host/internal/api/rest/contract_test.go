package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/api/rest"
)

// refusal is a request and what it is refused with.
type refusal struct {
	name, token, method, path, body string
	status                          int
	want                            string
}

func (c refusal) check(t *testing.T, h http.Handler) {
	t.Helper()
	q := request{method: c.method, path: c.path, token: c.token, body: c.body}
	a := serve(t, h, q)
	judge(t, q, a)
	if a.status != c.status || a.body != detail(c.want) {
		t.Errorf("%s: %s %s = %d %s, want %d %s", c.name, c.method, c.path, a.status, a.body, c.status, c.want)
	}
}

// keyed are MAIL's routes that take a key, and the role they take.
var keyed = map[string]string{
	"POST /health": "admin", "GET /status": "user", "GET /whoami": "user", "POST /message": "user", "GET /tasks": "user",
	"GET /task": "user", "POST /swarms": "admin", "POST /swarms/register": "admin", "GET /swarms/dump": "admin",
	"POST /swarms/load": "admin", "POST /interswarm/forward": "agent", "POST /interswarm/back": "agent",
	"POST /interswarm/message": "user", "POST /responses": "user", "GET /ui/agents": "user", "POST /ui/message": "user",
	"GET /ui/tasks": "user", "GET /ui/task/{task_id}": "user", "GET /ui/task-summary/{task_id}": "user", "GET /ui/dump-events": "user",
}

// MAIL's 401s on each of its routes come before a body is read.
func TestContract401(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.Debug = true })
	for route, need := range keyed {
		format := "invalid API key format"
		if need == "user" {
			format = "invalid role"
		}
		q := good[route]
		q.method, _, _ = strings.Cut(route, " ")
		q.body = "not even JSON"
		for _, c := range []struct{ header, want string }{
			{"", "no API key provided"}, {aliceToken, format}, {"Basic " + aliceToken, format}, {"Bearer", format},
			{"Bearer nobody", "invalid API key"}, {"bearer " + wrongRole(need), "invalid role"},
		} {
			q.token, q.header = "-", http.Header{}
			if c.header != "" {
				q.header.Set("Authorization", c.header)
			}
			a := serve(t, h.handler, q)
			judge(t, q, a)
			if a.status != http.StatusUnauthorized || a.body != detail(c.want) {
				t.Errorf("%s with %q: %d %s, want %s", route, c.header, a.status, a.body, c.want)
			}
		}
	}
}

// wrongRole is a key that does not do.
func wrongRole(need string) string {
	if need == "agent" {
		return adminToken
	}
	if need == "admin" {
		return aliceToken
	}
	return agentToken
}

// Debug routes do not exist when debug is off, for any caller.
func TestContractDebugOff(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for _, route := range rest.DebugRoutes() {
		method, _, _ := strings.Cut(route, " ")
		path := good[route].path
		for _, token := range tokens {
			refusal{route, token, method, path, "", http.StatusNotFound, "Not found"}.check(t, h.handler)
		}
	}
	if n := len(rest.DebugRoutes()); n != 7 {
		t.Errorf("%d debug routes", n)
	}
}

// MAIL's 400s and 404s that other tests do not have. TestPostRefuses has the 400s
// of POST /message, TestResume its 404s (R-088, G-06, G-14, G-42).
func TestContract400And404(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) {
		h.opt.Debug, h.opt.Registry, h.opt.Definitions = true, newFakeRegistry(), fakeDefinitions{}
	})
	h.postAndWait(obj{"task_id": "t", "body": "b"})
	for _, c := range []refusal{
		{"no status", adminToken, "POST", "/health", `{}`, 400, "status is required"},
		{"null status", adminToken, "POST", "/health", `{"status":null}`, 400, "status is required"},
		{"no id", aliceToken, "GET", "/task", "", 400, "task_id is required"},
		{"null id", aliceToken, "GET", "/task", `{"task_id":null}`, 400, "task_id is required"},
		{"a number", aliceToken, "GET", "/task", `{"task_id":5}`, 400, "task_id must be a string"},
		{"no JSON", aliceToken, "GET", "/task", `[]`, 400, "error parsing request: must be a JSON object, got list"},
		{"no task", aliceToken, "GET", "/task", `{"task_id":"x"}`, 404, "task 'x' not found"},
		{"another's task", bobToken, "GET", "/task", `{"task_id":"t"}`, 404, "task 't' not found"},
		{"no task", aliceToken, "GET", "/tasks/x", "", 404, "task 'x' not found"},

		{"no JSON", adminToken, "POST", "/swarms", `[]`, 400, "error parsing request: must be a JSON object, got list"},
		{"nothing", adminToken, "POST", "/swarms", `{}`, 400, "name and base_url are required"},
		{"no URL", adminToken, "POST", "/swarms/register", `{"name":"a"}`, 400, "name and base_url are required"},
		{"no name", adminToken, "POST", "/swarms", `{"base_url":"https://a.example"}`, 400, "name and base_url are required"},
		{"a number", adminToken, "POST", "/swarms", `{"name":5,"base_url":"https://a.example"}`, 400, "name must be a string, got int"},
		{"volatile", adminToken, "POST", "/swarms", `{"name":"a","base_url":"https://a.example","volatile":"no"}`, 400, "volatile must be a boolean, got str"},
		{"metadata", adminToken, "POST", "/swarms", `{"name":"a","base_url":"https://a.example","metadata":[]}`, 400, "metadata must be an object, got list"},
		{"auth_token", adminToken, "POST", "/swarms", `{"name":"a","base_url":"https://a.example","auth_token":{}}`, 400, "auth_token must be a string, got dict"},
		{"a bad URL", adminToken, "POST", "/swarms", `{"name":"a","base_url":"a"}`, 400, "base_url must be as in https://depot.example"},
		{"no definition", adminToken, "POST", "/swarms/load", `{}`, 400, "json is required: one swarm definition, as a string"},
		{"an object", adminToken, "POST", "/swarms/load", `{"json":{}}`, 400, "json must be a string, got dict"},
		{"a bad one", adminToken, "POST", "/swarms/load", `{"json":"exec:"}`, 400,
			"error loading swarm from JSON: agents.boss.source: exec: is for the operator's file"},

		{"no token", aliceToken, "POST", "/interswarm/message", `{"body":"b","targets":["boss"]}`, 401, "user token is required: the member 'user_token' must not be empty"},
		{"null token", aliceToken, "POST", "/interswarm/message", `{"user_token":null,"body":"b","targets":["boss"]}`, 401, "user token is required: the member 'user_token' must not be empty"},
		{"no body", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","targets":["boss"]}`, 400, "'targets' and 'body' are required"},
		{"no targets", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b"}`, 400, "'targets' and 'body' are required"},
		{"empty targets", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":[]}`, 400, "'targets' and 'body' are required"},
		{"two targets", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":["boss","desk"]}`, 400,
			"'request' messages require exactly one target"},
		{"a text", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":"boss"}`, 400, "targets must be a list of strings"},
		{"numbers", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":[5]}`, 400, "targets must be a list of strings"},
		{"a type", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":["boss"],"msg_type":"interrupt"}`, 400,
			"msg_type 'interrupt' is not supported for interswarm send"},
		{"no agent", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":["nobody"]}`, 400,
			"targets: 'nobody' is not an agent of swarm 'hive'"},
		{"no entrypoint", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":["math@hive"]}`, 400,
			"targets: agent 'math' is not an entrypoint (enable_entrypoint is false)"},
		{"no address", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":["a b"]}`, 400, "targets: must not contain whitespace"},
		{"routing", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":["boss"],"routing_info":[]}`, 400,
			"routing_info must be an object, got list"},
		{"stream", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":["boss"],"stream":"yes"}`, 400, "stream must be a boolean, got str"},
		{"pings", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":["boss"],"ignore_stream_pings":1}`, 400,
			"ignore_stream_pings must be a boolean, got int"},
		{"subject", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":["boss"],"subject":"::task_complete::"}`, 400,
			"subject must not begin with '::', which is reserved for the system"},
		{"another swarm", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":["stock@depot"]}`, 503, "interswarm router not available"},
		{"both", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","msg_type":"broadcast","targets":["boss","stock@depot"]}`, 503,
			"interswarm router not available"},
		{"gone", "-", "POST", "/interswarm/response", "", 410, "this route has gone: an answer to another swarm goes to its POST /interswarm/back, in a wrapper"},

		{"no input", aliceToken, "POST", "/responses", `{"tools":[]}`, 400, "parameter 'input' is required"},
		{"no tools", aliceToken, "POST", "/responses", `{"input":[]}`, 400, "parameter 'tools' is required"},
		{"a text", aliceToken, "POST", "/responses", `{"input":"hello","tools":[]}`, 400, "parameter 'input' must be a list, got str"},
		{"tools", aliceToken, "POST", "/responses", `{"input":[],"tools":{}}`, 400, "parameter 'tools' must be a list, got dict"},
		{"instructions", aliceToken, "POST", "/responses", `{"input":[],"tools":[],"instructions":5}`, 400, "parameter 'instructions' must be a str, got int"},
		{"kwargs", aliceToken, "POST", "/responses", `{"input":[],"tools":[],"kwargs":"x"}`, 400, "parameter 'kwargs' must be a dict, got str"},
		{"parallel", aliceToken, "POST", "/responses", `{"input":[],"tools":[],"parallel_tool_calls":"x"}`, 400, "parameter 'parallel_tool_calls' must be a bool, got str"},
		{"no message", aliceToken, "POST", "/responses", `{"input":[],"tools":[]}`, 400, "no message provided"},
		{"only the assistant", aliceToken, "POST", "/responses", `{"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"tools":[]}`, 400, "no message provided"},
		{"no objects", aliceToken, "POST", "/responses", `{"input":["a"],"tools":[]}`, 400, "parameter 'input' must be a list of objects"},
		{"no task", aliceToken, "POST", "/responses", `{"input":[{"type":"function_call_output","call_id":"c","output":"o"}],"tools":[]}`, 400,
			"parameter 'previous_response_id' is required"},
		{"no call", aliceToken, "POST", "/responses", `{"input":[{"type":"function_call_output","output":"o"}],"tools":[],"previous_response_id":"t"}`, 400,
			"parameter 'input' must have a call_id in each function_call_output"},
		{"not paused", aliceToken, "POST", "/responses", `{"input":[{"type":"function_call_output","call_id":"c","output":"o"}],"tools":[],"previous_response_id":"t"}`, 400,
			"task 't' has no pending breakpoint tool calls"},
		{"unknown", aliceToken, "POST", "/responses", `{"input":[{"role":"user","content":"a"}],"tools":[],"previous_response_id":"x"}`, 404, "task 'x' not found"},

		{"no message", aliceToken, "POST", "/ui/message", `{}`, 400, "no message provided"},
		{"no task", aliceToken, "GET", "/ui/task/x", "", 404, "Task 'x' not found"},
		{"another's task", bobToken, "GET", "/ui/task/t", "", 404, "Task 't' not found"},
		{"no task", aliceToken, "GET", "/ui/task-summary/x", "", 404, "Task 'x' not found"},
		{"no route", "-", "GET", "/nowhere", "", 404, "Not Found"},
	} {
		c.check(t, h.handler)
	}
}

// A wrapper is checked in a fixed order, and completely before its target (R-088,
// G-06, G-08, G-14, G-42).
func TestContractWrapper(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	const unrouted = "interswarm router not available"
	payload := obj{"task_id": "t", "request_id": "0f3a7a34-9d0e-4f0c-9a55-6a6a0a3b8f21", "sender": obj{"address_type": "agent", "address": "chief@depot"},
		"recipient": obj{"address_type": "agent", "address": "boss"}, "subject": "s", "body": "b"}
	edited := func(name string, value any) obj {
		p := obj{}
		for k, v := range payload {
			p[k] = v
		}
		if p[name] = value; value == none {
			delete(p, name)
		}
		return p
	}
	const malformed = "parameter 'message' is malformed: "
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"no JSON", `{`, 400, "error parsing request: the body is no JSON: it ends too early"},
		{"a list", `[]`, 400, "error parsing request: must be a JSON object, got list"},
		{"nothing", `{}`, 400, "parameter 'message' is required"},
		{"null", `{"message":null}`, 400, "parameter 'message' is required"},
		{"empty", `{"message":{}}`, 400, "parameter 'message' is required"},
		{"a text", `{"message":"m"}`, 400, "parameter 'message' must be a dict, got str"},
		{"no message_id", wrapper("message_id", none, "source_swarm", none), 400, "parameter 'message_id' is required"},
		{"no source_swarm", wrapper("source_swarm", none, "target_swarm", none), 400, "parameter 'source_swarm' is required"},
		{"no target_swarm", wrapper("target_swarm", none), 400, "parameter 'target_swarm' is required"},
		{"null timestamp", wrapper("timestamp", nil), 400, "parameter 'timestamp' is required"},
		{"no payload", wrapper("payload", none), 400, "parameter 'payload' is required"},
		{"no msg_type", wrapper("msg_type", none), 400, "parameter 'msg_type' is required"},
		{"no owner", wrapper("task_owner", none), 400, "parameter 'task_owner' is required"},
		{"no contributors", wrapper("task_contributors", none), 400, "parameter 'task_contributors' is required"},
		{"a number", wrapper("message_id", 5), 400, "parameter 'message_id' must be a str, got int"},
		{"a list", wrapper("payload", []int{}), 400, "parameter 'payload' must be a dict, got list"},
		{"a text", wrapper("task_contributors", "x"), 400, "parameter 'task_contributors' must be a list, got str"},
		{"a token", wrapper("auth_token", 5.5), 400, "parameter 'auth_token' must be a str, got float"},
		{"metadata", wrapper("metadata", true), 400, "parameter 'metadata' must be a dict, got bool"},
		{"a bad time", wrapper("timestamp", "noon"), 400, malformed + "timestamp: must be an RFC 3339 date-time"},
		{"a bad type", wrapper("msg_type", "letter"), 400, malformed + "msg_type: must be request, response, broadcast, interrupt or broadcast_complete"},
		{"a completion", wrapper("msg_type", "broadcast_complete"), 400, ""},
		{"another payload", wrapper("msg_type", "interrupt"), 400, ""},
		{"no task", wrapper("payload", edited("task_id", none)), 400, ""},
		{"an empty task", wrapper("payload", edited("task_id", "")), 400, ""},
		{"no sender", wrapper("payload", edited("sender", none)), 400, ""},
		{"a bad id", wrapper("payload", edited("request_id", "x")), 400, ""},
		{"more", wrapper("payload", edited("Body", "x")), 400, ""},
		{"nobody's", wrapper("task_owner", "carol"), 400, "parameter 'task_contributors' is malformed: must have the form role:id@swarm"},
		{"a stranger", wrapper("task_contributors", []string{"user:carol@depot", "carol"}), 400,
			"parameter 'task_contributors' is malformed: must have the form role:id@swarm"},
		{"a role of ours", wrapper("task_contributors", []string{"user:carol@depot", "agent:a@hive"}), 400, "invalid role: agent"},
		{"without its owner", wrapper("task_contributors", []string{"swarm:depot@hive"}), 400, "parameter 'task_contributors' must contain the 'task_owner'"},
		{"another target", wrapper("target_swarm", "harbor"), 400, "parameter 'target_swarm' must be 'hive', the swarm of this host"},
		{"a forged source", wrapper("source_swarm", "harbor"), 401, "invalid role: this key does not speak for the swarm that 'source_swarm' names"},
		{"another's task", wrapper("task_owner", "user:a@hive", "task_contributors", []string{"user:a@hive"}), 401,
			"invalid role: the swarm that calls is not among the contributors of the task"},

		{"whole", wrapper(), 503, unrouted},
		{"null token and metadata", wrapper("auth_token", nil, "metadata", nil), 503, unrouted},
		{"without them", wrapper("auth_token", none, "metadata", none), 503, unrouted},
		{"a stranger's role", wrapper("task_contributors", []string{"user:carol@depot", "agent:remote@remote"}), 503, unrouted},
		{"an extra key", wrapper("task_id", "t"), 503, unrouted},
		{"nulls in the payload", wrapper("payload", edited("sender_swarm", nil)), 503, unrouted},
		{"a short time", wrapper("timestamp", "2026-03-01T09:31:00Z"), 503, unrouted},
		{"a spaced time", wrapper("timestamp", "2026-03-01 09:31:00.5+00:00"), 503, unrouted},
	} {
		for _, path := range []string{"/interswarm/forward", "/interswarm/back"} {
			q := request{method: "POST", path: path, token: agentToken, body: c.body}
			a := h.do(q)
			if a.status != c.status || c.want != "" && a.body != detail(c.want) {
				t.Errorf("%s: %s = %d %s, want %d %s", c.name, path, a.status, a.body, c.status, c.want)
			}
		}
	}
}

// Without what stands behind them the routes say so.
func TestContract503(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.Debug = true })
	empty := rest.New(failingRuntime{}, newKeys(t), rest.Options{Swarm: "hive", Debug: true})
	for _, c := range []refusal{
		{"no registry", adminToken, "POST", "/swarms", `{"name":"a","base_url":"https://a.example"}`, 503, "swarm registry not available"},
		{"no definitions", adminToken, "POST", "/swarms/load", `{"json":"{}"}`, 503, "this host takes no swarm definitions over the network"},
	} {
		c.check(t, h.handler)
	}
	for _, c := range []refusal{
		{"no swarm", adminToken, "GET", "/swarms/dump", "", 503, "no swarm loaded"},
		{"no swarm", aliceToken, "GET", "/ui/agents", "", 503, "no swarm loaded"},
		{"no swarm", "-", "GET", "/swarms", "", 503, "no swarm loaded"},
		{"no swarm", aliceToken, "POST", "/interswarm/message", `{"user_token":"u","body":"b","targets":["boss"]}`, 503, "no swarm loaded"},
	} {
		c.check(t, empty)
	}
}

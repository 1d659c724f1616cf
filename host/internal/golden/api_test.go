package golden_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// endpoints are all routes of the public listener and who may call them.
var endpoints = []struct{ method, path, role string }{
	{"GET", "/", ""}, {"GET", "/health", ""}, {"POST", "/health", "ada"}, {"GET", "/status", "alice"}, {"GET", "/whoami", "alice"},
	{"POST", "/message", "alice"}, {"GET", "/tasks", "alice"}, {"GET", "/tasks/absent", "alice"}, {"GET", "/task", "alice"},
	{"GET", "/swarms", ""}, {"POST", "/swarms", "ada"}, {"POST", "/swarms/register", "ada"}, {"GET", "/swarms/dump", "ada"}, {"POST", "/swarms/load", "ada"},
	{"POST", "/interswarm/forward", "depot"}, {"POST", "/interswarm/back", "depot"}, {"POST", "/interswarm/message", "alice"}, {"POST", "/interswarm/response", ""},
	{"GET", "/openapi.json", ""}, {"GET", "/docs", ""},
	{"POST", "/responses", "alice"}, {"GET", "/ui/agents", "alice"}, {"POST", "/ui/message", "alice"}, {"GET", "/ui/tasks", "alice"},
	{"GET", "/ui/task/absent", "alice"}, {"GET", "/ui/task-summary/absent", "alice"}, {"GET", "/ui/dump-events", "alice"},
	{"GET", "/skep/v1/version", "alice"}, {"GET", "/skep/v1/tasks", "alice"}, {"GET", "/skep/v1/tasks/absent", "alice"},
	{"GET", "/skep/v1/tasks/absent/events", "alice"}, {"GET", "/skep/v1/tasks/absent/history", "alice"}, {"GET", "/skep/v1/tasks/absent/turns", "alice"},
	{"POST", "/skep/v1/tasks/absent/cancel", "alice"}, {"POST", "/skep/v1/agents/absent/release", "ops"}, {"POST", "/skep/v1/tenants/absent/erase", "ops"},
	{"GET", "/skep/v1/definition", "ada"}, {"DELETE", "/skep/v1/definition", "ada"}, {"GET", "/skep/v1/peers", "ada"}, {"DELETE", "/skep/v1/peers/absent", "ada"},
	{"POST", "/skep/v1/peers/absent/ping", "ada"}, {"GET", "/skep/v1/gateways", "ada"}, {"GET", "/skep/v1/gateways/absent", "ada"}, {"POST", "/skep/v1/partners/absent/ping", "ada"}, {"GET", "/skep/v1/dead-letters", "ada"}, {"POST", "/skep/v1/dead-letters/absent/resend", "ada"},
	{"GET", "/skep/v1/pulse?kind=x", "alice"}, {"GET", "/skep/v1/questions", "alice"}, {"POST", "/skep/v1/questions/answer", "alice"},
	{"GET", "/skep/v1/log/level", "ops"}, {"POST", "/skep/v1/log/level", "ops"}, {"GET", "/skep/v1/usage", "ada"}, {"GET", "/skep/v1/tenants", "ada"}, {"GET", "/skep/v1/plan", "ops"}, {"POST", "/skep/v1/reload", "ops"}, {"GET", "/skep/v1/cluster", "ops"}, {"POST", "/skep/v1/cluster/hosts/7/drain", "ops"}, {"POST", "/skep/v1/cluster/finalize", "ops"}, {"POST", "/skep/v1/tokens", "ada"}, {"GET", "/skep/v1/tokens", "ada"}, {"DELETE", "/skep/v1/tokens/absent", "ada"},
}

// deep is more nested than the host reads.
var deep = strings.Repeat("[", 20) + strings.Repeat("]", 20)

// malformed are bodies that no route takes, or only few.
var malformed = []string{"", "{", "[]", `"x"`, "{}", `{"a":1,"a":2}`, `{"body":` + deep + `}`, `{"body":"` + strings.Repeat("x", 5000) + `"}`, "{\"body\":\"\xff\"}", `{"body":"x"} {}`}

const uuid = "6f1c2d3e-4b5a-4c6d-8e7f-901a2b3c4d5e"

// remote is a message from another swarm, with one part replaced.
func remote(old, new string) string {
	return strings.Replace(`{"message_id":"`+uuid+`","source_swarm":"depot","target_swarm":"hive","timestamp":"2026-11-20T10:00:00+00:00","msg_type":"request","auth_token":null,"metadata":{},"task_owner":"user:bob@depot","task_contributors":["user:bob@depot"],`+
		`"payload":{"task_id":"far","request_id":"`+uuid+`","sender":{"address_type":"agent","address":"far@depot"},"recipient":{"address_type":"agent","address":"boss@hive"},"subject":"s","body":"b","sender_swarm":"depot","recipient_swarm":"hive"}}`, old, new, 1)
}

// requests are more that are refused, and a few that are answered. A request may
// follow from the ones before it.
var requests = []struct{ who, method, path, body string }{
	{"", "GET", "/nowhere", ""}, {"", "GET", "/health/", ""}, {"", "PATCH", "/message", ""}, {"", "OPTIONS", "/message", ""}, {"", "PUT", "/skep/v1/tasks", ""},
	{"alice", "GET", "/skep/v1/nowhere", ""}, {"alice", "GET", "/skep/v1//tasks", ""}, {"alice", "GET", "/tasks/a%2Fb", ""}, {"", "TRACE", "/", ""},
	{"Basic x", "GET", "/status", ""}, {"Bearer", "GET", "/status", ""}, {"bearer nobody", "GET", "/status", ""}, {"token a b", "GET", "/status", ""},
	{"alice", "POST", "/message", `{"body":7}`}, {"alice", "POST", "/message", `{"body":""}`}, {"alice", "POST", "/message", `{"body":"x","subject":"::help::"}`},
	{"alice", "POST", "/message", `{"body":"x","subject":7}`}, {"alice", "POST", "/message", `{"body":"x","msg_type":"letter"}`}, {"alice", "POST", "/message", `{"body":"x","entrypoint":"math"}`},
	{"alice", "POST", "/message", `{"body":"x","entrypoint":"nobody"}`}, {"alice", "POST", "/message", `{"body":"x","task_id":""}`}, {"alice", "POST", "/message", `{"body":"x","task_id":7}`},
	{"alice", "POST", "/message", `{"body":"x","task_id":"a b"}`}, {"alice", "POST", "/message", `{"body":"x","task_id":"` + strings.Repeat("t", 300) + `"}`}, {"alice", "POST", "/message", `{"body":"x","show_events":"yes"}`},
	{"alice", "POST", "/message", `{"body":"x","stream":"yes"}`}, {"alice", "POST", "/message", `{"body":"x","resume_from":"breakpoint"}`}, {"alice", "POST", "/message", `{"body":"x","resume_from":"user_response"}`},
	{"alice", "POST", "/message", `{"body":"x","resume_from":"breakpoint_tool_call","task_id":"absent"}`}, {"alice", "POST", "/message", `{"body":"x","resume_from":"user_response","task_id":"absent"}`},
	{"alice", "POST", "/message", `{"body":"x","kwargs":7}`}, {"alice", "POST", "/message", `{"body":"x","kwargs":{"x":1}}`}, {"alice", "POST", "/message", `{"message":"x","body":"y"}`},
	{"alice", "POST", "/message", `{"body":"[[\"confirm\",{\"order\":1}],[\"confirm\",{}]]","task_id":"paused"}`},
	{"alice", "POST", "/message", `{"body":"x","task_id":"paused","resume_from":"breakpoint_tool_call"}`},
	{"alice", "POST", "/message", `{"body":"x","task_id":"paused","resume_from":"breakpoint_tool_call","kwargs":{"breakpoint_tool_caller":"math","breakpoint_tool_call_result":"x"}}`},
	{"alice", "POST", "/message", `{"body":"x","task_id":"paused","resume_from":"breakpoint_tool_call","kwargs":{"breakpoint_tool_caller":"boss","breakpoint_tool_call_result":[{"call_id":"absent","content":"x"}]}}`},
	{"alice", "POST", "/message", `{"body":"hello","task_id":"done"}`}, {"alice", "POST", "/message", `{"body":"x","task_id":"done","resume_from":"user_response"}`}, {"alice", "POST", "/message", `{"body":"[[\"trap\",{}]]","task_id":"trapped"}`},
	{"ada", "GET", "/skep/v1/tasks/done", ""}, {"depot", "POST", "/message", `{"body":"x"}`}, {"ops", "POST", "/message", `{"body":"x"}`},
	{"alice", "GET", "/task", `{"task_id":7}`}, {"alice", "GET", "/task?task_id=absent", ""}, {"alice", "GET", "/task", `{"task_id":"absent"}`},
	{"alice", "GET", "/skep/v1/tasks?limit=0", ""}, {"alice", "GET", "/skep/v1/tasks?limit=x", ""}, {"alice", "GET", "/skep/v1/tasks?cursor=x", ""}, {"alice", "GET", "/skep/v1/tasks?state=x", ""}, {"alice", "GET", "/skep/v1/tasks?colour=red", ""},
	{"alice", "GET", "/skep/v1/tasks/done/events?after=x", ""}, {"alice", "GET", "/skep/v1/tasks/done/history", ""}, {"alice", "GET", "/skep/v1/tasks/done/history?agent=nobody", ""}, {"alice", "GET", "/skep/v1/tasks/done/history?agent=boss&limit=0", ""},
	{"alice", "GET", "/skep/v1/tasks/done/turns?after=x", ""}, {"alice", "POST", "/skep/v1/tasks/done/cancel", `{"x":1}`},
	{"ada", "POST", "/health", `{"status":"sick"}`}, {"ada", "POST", "/health", `{"status":7}`}, {"ada", "POST", "/swarms", `{"name":"hive","base_url":"https://hive.invalid"}`}, {"ada", "POST", "/swarms", `{"name":"a b","base_url":"https://a.invalid"}`},
	{"ada", "POST", "/swarms", `{"name":"yard","base_url":"ftp://yard.invalid"}`}, {"ada", "POST", "/swarms", `{"name":"yard","base_url":"https://yard.invalid","volatile":"no"}`}, {"ada", "POST", "/swarms", `{"name":"depot","base_url":"https://yard.invalid"}`},
	{"ada", "POST", "/swarms", `{"name":"yard","base_url":"http://127.0.0.1:9"}`}, {"ada", "POST", "/swarms", `{"name":"yard","base_url":"https://yard.invalid","auth_token":7}`},
	{"ada", "POST", "/swarms/load", `{"json":"{"}`}, {"ada", "POST", "/swarms/load", `{"json":"{}"}`}, {"ada", "POST", "/swarms/load", `{"json":7}`},
	{"ada", "POST", "/swarms/load", `{"json":"{\"name\":\"new\",\"version\":\"1\",\"entrypoint\":\"a\",\"user_id\":\"u\",\"agents\":[{\"name\":\"a\",\"factory\":\"x:y\",\"comm_targets\":[],\"actions\":[],\"agent_params\":{}}],\"actions\":[]}"}`},
	{"ada", "DELETE", "/skep/v1/peers/depot", ""}, {"ada", "POST", "/skep/v1/peers/a%20b/ping", ""}, {"ada", "POST", "/skep/v1/dead-letters/7/resend", ""}, {"ada", "GET", "/skep/v1/dead-letters?limit=x", ""},
	{"alice", "GET", "/skep/v1/questions?after=x", ""}, {"alice", "GET", "/skep/v1/questions?tenant=acme", ""}, {"alice", "POST", "/skep/v1/questions/answer", `{"task_id":"absent","call_id":"t1.c1","content":"x"}`},
	{"alice", "POST", "/skep/v1/questions/answer", `{"task_id":"done","call_id":"t1.c1","content":"x"}`}, {"alice", "POST", "/skep/v1/questions/answer", `{"instance":"swarm:depot","task_id":"far","call_id":"t1.c1","content":"x"}`},
	{"ada", "POST", "/skep/v1/questions/answer", `{"tenant":"acme","instance":"swarm:depot","task_id":"far","call_id":"t1.c1","content":"x"}`}, {"ada", "POST", "/skep/v1/questions/answer", `{"instance":"swarm:depot","task_id":"far","call_id":"t1.c1","content":"x"}`},
	{"ada", "POST", "/skep/v1/tokens", `{"role":"king","id":"x"}`}, {"ada", "POST", "/skep/v1/tokens", `{"role":"user"}`}, {"ada", "POST", "/skep/v1/tokens", `{"role":"user","id":"a b"}`}, {"ada", "POST", "/skep/v1/tokens", `{"role":"operator","id":"x"}`},
	{"ada", "POST", "/skep/v1/tokens", `{"role":"user","id":"x","ttl":"soon"}`}, {"ada", "POST", "/skep/v1/tokens", `{"role":"user","id":"x","tenant":"absent"}`}, {"ada", "POST", "/skep/v1/tokens", `{"role":"user","id":"x","scopes":["all"]}`}, {"ada", "POST", "/skep/v1/tokens", `{"role":"agent","id":"x","peer":"a b"}`},
	{"ops", "POST", "/skep/v1/tenants/default/erase", ""}, {"ops", "POST", "/skep/v1/tenants/default/erase", `{"confirm":"no"}`}, {"ops", "POST", "/skep/v1/agents/boss/release", `{"tenant":"absent"}`}, {"ops", "POST", "/skep/v1/agents/boss/release", ""},
	{"depot", "POST", "/interswarm/forward", `{"message":{}}`}, {"depot", "POST", "/interswarm/forward", `{"message":` + remote("", "") + `}`},
	{"depot", "POST", "/interswarm/forward", `{"message":` + remote(`"source_swarm":"depot"`, `"source_swarm":"yard"`) + `}`}, {"depot", "POST", "/interswarm/forward", `{"message":` + remote(`"target_swarm":"hive"`, `"target_swarm":"yard"`) + `}`},
	{"depot", "POST", "/interswarm/forward", `{"message":` + remote("boss@hive", "nobody@hive") + `}`}, {"depot", "POST", "/interswarm/forward", `{"message":` + remote("far@depot", "far@yard") + `}`},
	{"depot", "POST", "/interswarm/forward", `{"message":` + remote(`"msg_type":"request"`, `"msg_type":"letter"`) + `}`}, {"depot", "POST", "/interswarm/forward", `{"message":` + remote(uuid, "x") + `}`},
	{"depot", "POST", "/interswarm/forward", `{"message":` + remote("user:bob@depot", "bob") + `}`}, {"depot", "POST", "/interswarm/forward", `{"message":` + remote("2026-11-20T10:00:00+00:00", "today") + `}`},
	{"depot", "POST", "/interswarm/back", `{"message":{}}`}, {"depot", "POST", "/interswarm/back", `{"message":` + remote(`"msg_type":"request"`, `"msg_type":"response"`) + `}`},
	{"alice", "POST", "/interswarm/message", `{"body":"x"}`}, {"alice", "POST", "/interswarm/message", `{"user_token":"x","body":"x","targets":["nobody"]}`}, {"alice", "POST", "/interswarm/message", `{"user_token":"` + variables["ALICE_KEY"] + `","body":"x","targets":["far@yard"]}`},
	{"alice", "POST", "/interswarm/message", `{"user_token":"` + variables["ALICE_KEY"] + `","body":"x","msg_type":"letter","targets":["far@depot"]}`}, {"alice", "POST", "/interswarm/message", `{"user_token":"` + variables["ALICE_KEY"] + `","body":"x"}`},
	{"", "POST", "/interswarm/response", `{"message":` + remote("", "") + `}`},
	{"alice", "POST", "/responses", `{"input":7}`}, {"alice", "POST", "/responses", `{"input":"x","model":7}`}, {"alice", "POST", "/ui/message", `{"body":"x","task_id":7}`}, {"alice", "GET", "/ui/dump-events?task_id=absent", ""}, {"alice", "GET", "/ui/task/done?x=1", ""},
}

// The status, the headers that guide a caller, and the body of every refusal.
func TestAPI(t *testing.T) {
	t.Parallel()
	s := newShell(t, "api")
	h := s.serve("-c", s.file("swarm.toml"), "--data", s.file("data"))
	var b strings.Builder
	for _, e := range endpoints {
		others := []string{""}
		if e.role != "" {
			for _, who := range []string{"ops", "ada", "alice", "depot"} {
				if who != e.role {
					others = append(others, who)
				}
			}
			others = append(others, e.role)
		}
		for _, who := range others {
			s.call(&b, h, who, e.method, e.path, "")
		}
		if e.method == http.MethodPost {
			for _, body := range malformed[1:] {
				s.call(&b, h, e.role, e.method, e.path, body)
			}
		}
	}
	golden(t, "api/routes.txt", b.String())
	b.Reset()
	for _, r := range requests {
		s.call(&b, h, r.who, r.method, r.path, r.body)
	}
	golden(t, "api/requests.txt", b.String())
}

// shown are the headers that guide a caller.
var shown = []string{"Allow", "Content-Type", "Location", "Retry-After", "Www-Authenticate", "X-Mail-Finish-Subject"}

// call writes what a request is answered with. Of what is no refusal only the begin
// is shown.
func (s shell) call(b *strings.Builder, h served, who, method, path, body string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, h.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if key := variables[strings.ToUpper(who)+"_KEY"]; key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	} else if who != "" {
		r.Header.Set("Authorization", who)
	}
	rsp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Errorf("%s %s: %v", method, path, err)
		return
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(rsp.Body, 1<<20))
	if err != nil {
		s.t.Errorf("%s %s: %v", method, path, err)
	}
	fmt.Fprintf(b, "%s\n  %d", strings.TrimSpace(fmt.Sprintf("%s %s %s %s", who, method, path, short(body, 800))), rsp.StatusCode)
	for _, name := range shown {
		if v := rsp.Header.Values(name); len(v) > 0 && !slices.Equal(v, []string{"application/json"}) {
			fmt.Fprintf(b, " %s: %s", name, strings.Join(v, ", "))
		}
	}
	answer := s.volatile(h, string(text))
	if rsp.StatusCode < 300 {
		answer = short(answer, 200)
	}
	fmt.Fprintf(b, "\n  %s\n", strings.ReplaceAll(answer, "\n", "\n  "))
}

func short(text string, most int) string {
	if len(text) > most {
		return fmt.Sprintf("%s… %d bytes", text[:120], len(text))
	}
	return strings.ToValidUTF8(text, "�")
}

var (
	id     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)`)
	secret = regexp.MustCompile(`"skep_[A-Za-z0-9_-]{43}"`)
	amount = regexp.MustCompile(`("(?:uptime|cpu_ms|fuel|latency_ms|sha256|digest)":)[^,}]+`)
)

// volatile takes out what differs from run to run.
func (s shell) volatile(h served, text string) string {
	text = moment.ReplaceAllString(s.scrub(strings.ReplaceAll(text, h.url, "URL")), "TIME")
	text = id.ReplaceAllString(text, "UUID")
	text = secret.ReplaceAllString(text, `"TOKEN"`)
	return amount.ReplaceAllString(text, "${1}N")
}

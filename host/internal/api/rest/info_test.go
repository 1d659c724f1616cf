package rest_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// matches compares an answer with a pattern in which <time> and <number> stand
// for any.
func matches(pattern, body string) bool {
	p := regexp.QuoteMeta(pattern)
	p = strings.ReplaceAll(p, "<time>", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00`)
	p = strings.ReplaceAll(p, "<number>", `[0-9.e-]+`)
	return regexp.MustCompile("^" + p + "$").MatchString(body)
}

func TestAbout_S14_S15_S16_X01_X02_X03_X27(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.def.Public = true })
	const swarm = `{"name":"hive","version":"1.2.3","description":"a test","entrypoint":"boss","keywords":["k"],"public":true}`
	const healthy = `{"status":"healthy","swarm_name":"hive","timestamp":"<time>"}`
	for _, c := range []struct {
		q    request
		want string
	}{
		{request{path: "/", token: "-"}, `{"name":"mail","protocol_version":"1.3","version":"1.3","swarm":` + swarm + `,"status":"running","uptime":<number>}`},
		{request{path: "/", token: "wrong"}, `{"name":"mail","protocol_version":"1.3","version":"1.3","swarm":` + swarm + `,"status":"running","uptime":<number>}`},
		{request{path: "/health", token: "-"}, healthy},
		{request{path: "/status"}, `{"swarm":{"name":"hive","status":"ready"},"active_users":0,"user_mail_ready":false,"user_task_running":false}`},
		{request{path: "/whoami"}, `{"id":"alice","username":"alice","role":"user"}`},
		{request{path: "/whoami", token: adminToken}, `{"id":"ada","username":"ada","role":"admin"}`},
		{request{path: "/whoami", token: operatorToken}, `{"id":"root","username":"root","role":"admin","operator":true}`},
		{request{path: "/swarms", token: "-"}, `{"swarms":[{"swarm_name":"hive","base_url":"` + h.server.URL + `","version":"1.3","last_seen":"<time>","is_active":true,"latency":null,"swarm_description":"a test","keywords":["k"],"metadata":null}]}`},
		{request{path: "/skep/v1/version"}, `{"version":"0.0.0-test","protocol_version":"1.3","abi":1}`},
		{request{method: "POST", path: "/health", token: adminToken, body: `{"status":"degraded","more":1}`}, `{"status":"degraded","swarm_name":"hive","timestamp":"<time>"}`},
		{request{path: "/health", token: "-"}, `{"status":"degraded","swarm_name":"hive","timestamp":"<time>"}`},
		{request{method: "POST", path: "/health", token: operatorToken, body: `{"status":"healthy"}`}, healthy},
	} {
		if a := h.do(c.q); a.status != http.StatusOK || !matches(c.want, a.body) {
			t.Errorf("%s %s: %d\n got %s\nwant %s", c.q.method, c.q.path, a.status, a.body, c.want)
		}
	}
}

func TestPostHealthRefuses(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for body, want := range map[string]string{
		`{}`:              "status is required",
		`{"status":null}`: "status is required",
		`{"status":""}`:   "status is required",
		`{"status":5}`:    "status must be a string, got int",
		`{"status":{}}`:   "status must be a string, got dict",
		`[]`:              "error parsing request: must be a JSON object, got list",
		`{"status":"` + strings.Repeat("x", 257) + `"}`: "status has 257 bytes, at most 256",
	} {
		a := h.do(request{method: "POST", path: "/health", token: adminToken, body: body})
		if a.status != http.StatusBadRequest || a.body != detail(want) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	if a := h.do(request{path: "/health"}); !strings.Contains(a.body, `"healthy"`) {
		t.Errorf("a refused change changed it: %s", a.body)
	}
}

// The instance's indicators match its tasks.
func TestStatus_X26(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	const form = `{"swarm":{"name":"hive","status":"ready"},"active_users":%d,"user_mail_ready":%v,"user_task_running":%v}`
	check := func(token string, users int, ready, running bool) {
		t.Helper()
		want := fmt.Sprintf(form, users, ready, running)
		if a := h.do(request{path: "/status", token: token}); a.body != want {
			t.Errorf("status of %s\n got %s\nwant %s", token, a.body, want)
		}
	}
	check(aliceToken, 0, false, false)
	h.post(obj{"body": calls("gate", obj{"name": "g"}, "task_complete", obj{"finish_message": "done"}), "task_id": "t"}, "Prefer", "respond-async")
	check(aliceToken, 1, true, true)
	check(bobToken, 1, false, false)
	h.script.open("g")
	h.do(request{path: "/skep/v1/tasks/t/events"})
	check(aliceToken, 1, true, false)
	q := postRequest(obj{"body": "b"})
	q.token = adminToken
	h.do(q)
	check(adminToken, 1, true, false)
}

func TestSwarmsPrivate_R071(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	if a := h.do(request{path: "/swarms", token: "-"}); a.status != http.StatusOK || a.body != `{"swarms":[]}` {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestSwarmsPublicURL_X27(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.def.Public, h.opt.PublicURL = true, "https://hive.example" })
	if a := h.do(request{path: "/swarms", token: "-"}); !strings.Contains(a.body, `"base_url":"https://hive.example"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

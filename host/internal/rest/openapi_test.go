package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xeipuuv/gojsonschema"

	"skep/host/internal/auth"
	"skep/host/internal/rest"
	"skep/host/internal/swarm"
	"skep/spec"
)

// openAPI is the published description.
var openAPI = sync.OnceValues(func() (map[string]any, error) {
	v, err := parseYAML(spec.OpenAPI())
	doc, _ := v.(map[string]any)
	return doc, err
})

func document(t testing.TB) map[string]any {
	t.Helper()
	doc, err := openAPI()
	if err != nil {
		t.Fatal("spec/openapi.yaml:", err)
	}
	return doc
}

// dig follows keys, and references on the way.
func dig(doc map[string]any, from any, path ...string) any {
	for {
		m, ok := from.(map[string]any)
		if ref, is := m["$ref"].(string); is {
			from = dig(doc, doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			continue
		}
		if len(path) == 0 || !ok {
			return from
		}
		from, path = m[path[0]], path[1:]
	}
}

// operations lists the description's operations as "METHOD path".
func operations(doc map[string]any) map[string]map[string]any {
	all := map[string]map[string]any{}
	paths, _ := doc["paths"].(map[string]any)
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		for method, op := range methods {
			all[strings.ToUpper(method)+" "+path], _ = op.(map[string]any)
		}
	}
	return all
}

// statuses lists what an operation may answer, but for the unexpected.
func statuses(op map[string]any) []string {
	responses, _ := op["responses"].(map[string]any)
	var all []string
	for status := range responses {
		if status != "default" {
			all = append(all, status)
		}
	}
	return sorted(all)
}

// undocumented compares what all tests of this package were answered with the
// description.
func undocumented() (faults []string) {
	doc, err := openAPI()
	if err != nil {
		return []string{err.Error()}
	}
	seen.Lock()
	defer seen.Unlock()
	ops := operations(doc)
	for route, answered := range seen.by {
		for status := range answered {
			known := slices.Contains(statuses(ops[route]), fmt.Sprint(status))
			if route != "" && !known && status != http.StatusInternalServerError && status != 499 {
				faults = append(faults, fmt.Sprintf("%s was answered with %d, which spec/openapi.yaml does not have", route, status))
			}
		}
	}
	return faults
}

func TestOpenAPIRoutes_R003_R057(t *testing.T) {
	t.Parallel()
	described := slices.Collect(maps.Keys(operations(document(t))))
	if diff := cmp.Diff(sorted(described), sorted(rest.Routes())); diff != "" {
		t.Errorf("spec/openapi.yaml (-) and the handler (+) differ\n%s", diff)
	}
}

// validate checks a JSON text by a schema of the description.
func validate(t testing.TB, doc map[string]any, schema any, text string) {
	t.Helper()
	judge, err := gojsonschema.NewSchema(gojsonschema.NewGoLoader(obj{"allOf": []any{schema}, "components": doc["components"]}))
	if err != nil {
		t.Fatal("schema:", err)
	}
	verdict, err := judge.Validate(gojsonschema.NewStringLoader(text))
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return
	}
	for _, fault := range verdict.Errors() {
		t.Errorf("%s\n%s", fault, text)
	}
}

func TestOpenAPIExamples(t *testing.T) {
	t.Parallel()
	doc := document(t)
	n := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if schema, ok := v["schema"]; ok && v["example"] != nil {
				n++
				raw, _ := json.Marshal(v["example"])
				validate(t, doc, schema, string(raw))
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(doc)
	if n < 20 {
		t.Errorf("only %d examples were found", n)
	}
}

// lab has a host for each kind of trouble.
type lab struct {
	t *testing.T
	// well is a host with a task "done" of alice's and one "busy" that runs.
	well *hive
	// closed is a host that goes down, empty one without a swarm.
	closed, empty http.Handler
	slow          *hive
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t}
	l.well = newHive(t, func(h *hive) {
		h.opt.Loopback, h.opt.MaxBody, h.def.Public = true, 4096, true
		h.limits.Quarantine = cell{"math"}
	})
	l.slow = newHive(t, func(h *hive) { h.opt.Stall = 50 * time.Millisecond })
	l.well.ask(obj{"task_id": "done", "body": "b"})
	l.well.post(obj{"task_id": "busy", "body": calls("gate", obj{"name": "never"})}, "Prefer", "respond-async")
	l.closed = rest.New(broken{err: swarm.ErrDraining}, newKeys(t), rest.Options{Swarm: "hive"})
	l.empty = rest.New(broken{err: swarm.ErrNotFound}, newKeys(t), rest.Options{Swarm: "hive"})
	return l
}

// cell is a quarantine that one agent never leaves.
type cell struct{ agent string }

func (c cell) Why(_, _, agent string) (string, bool)    { return "a test", false }
func (c cell) Confine(_, _, _, _ string) error          { return nil }
func (c cell) Release(_, _, agent string) (bool, error) { return agent == c.agent, nil }

// good are requests that succeed, by operation; their paths need no more.
var good = map[string]request{
	"GET /":                                {path: "/", token: "-"},
	"GET /health":                          {path: "/health", token: "-"},
	"POST /health":                         {path: "/health", token: adminToken, body: `{"status":"healthy"}`},
	"GET /status":                          {path: "/status"},
	"GET /whoami":                          {path: "/whoami"},
	"POST /message":                        {path: "/message", body: `{"body":"b","show_events":true}`},
	"GET /tasks":                           {path: "/tasks"},
	"GET /tasks/{task_id}":                 {path: "/tasks/done"},
	"GET /task":                            {path: "/task", body: `{"task_id":"done"}`},
	"GET /swarms":                          {path: "/swarms", token: "-"},
	"GET /skep/v1/version":                 {path: "/skep/v1/version"},
	"GET /skep/v1/tasks":                   {path: "/skep/v1/tasks?limit=1"},
	"GET /skep/v1/tasks/{task_id}":         {path: "/skep/v1/tasks/done"},
	"GET /skep/v1/tasks/{task_id}/events":  {path: "/skep/v1/tasks/done/events"},
	"GET /skep/v1/tasks/{task_id}/history": {path: "/skep/v1/tasks/done/history?agent=boss"},
	"POST /skep/v1/tasks/{task_id}/cancel": {path: "/skep/v1/tasks/busy/cancel"},
	"POST /skep/v1/agents/{agent}/release": {path: "/skep/v1/agents/math/release?tenant=default", token: operatorToken},
}

// bad are requests that are malformed, unknown or in conflict.
var bad = map[string]request{
	"POST /health 400":                         {path: "/health", token: adminToken, body: `{}`},
	"POST /message 400":                        {path: "/message", body: `{}`},
	"POST /message 404":                        {path: "/message", body: `{"body":"b","task_id":"x","resume_from":"user_response"}`},
	"GET /tasks/{task_id} 404":                 {path: "/tasks/x"},
	"GET /task 400":                            {path: "/task", body: `{}`},
	"GET /task 404":                            {path: "/task", body: `{"task_id":"x"}`},
	"GET /skep/v1/tasks 400":                   {path: "/skep/v1/tasks?limit=x"},
	"GET /skep/v1/tasks/{task_id} 404":         {path: "/skep/v1/tasks/x"},
	"GET /skep/v1/tasks/{task_id}/events 400":  {path: "/skep/v1/tasks/done/events?after=x"},
	"GET /skep/v1/tasks/{task_id}/events 404":  {path: "/skep/v1/tasks/x/events"},
	"GET /skep/v1/tasks/{task_id}/history 400": {path: "/skep/v1/tasks/done/history"},
	"GET /skep/v1/tasks/{task_id}/history 404": {path: "/skep/v1/tasks/x/history?agent=boss"},
	"POST /skep/v1/tasks/{task_id}/cancel 404": {path: "/skep/v1/tasks/x/cancel"},
	"POST /skep/v1/tasks/{task_id}/cancel 409": {path: "/skep/v1/tasks/done/cancel"},
	"POST /skep/v1/agents/{agent}/release 404": {path: "/skep/v1/agents/text/release", token: operatorToken},
}

// produce gets an operation to answer with a status. ok is false when nobody
// knows how, so that a status nobody can get is not in the description.
func (l *lab) produce(op, status string) (a answer, ok bool) {
	method, _, _ := strings.Cut(op, " ")
	q, ok := good[op]
	q.method = method
	switch status {
	case "200", "202":
		if op == "POST /message" && status == "202" {
			q.header = http.Header{"Prefer": {"respond-async"}}
		}
		return l.well.do(q), ok
	case "401":
		q.token = "-"
		return l.well.do(q), ok
	case "408":
		return l.stall(q), ok
	case "409":
		if op == "POST /message" {
			q.header = http.Header{"Idempotency-Key": {"k"}}
			l.well.do(q)
			q.body = `{"body":"another"}`
			return l.well.do(q), true
		}
	case "413":
		q.body = `{"x":"` + strings.Repeat("x", 5000) + `"}`
		return l.well.do(q), ok
	case "421":
		q.host = "evil.example"
		return l.well.do(q), ok
	case "429":
		once := rest.New(l.well.rt, newKeys(l.t), rest.Options{Swarm: "hive", Rate: auth.Rate{Requests: 1, Per: time.Hour}})
		serve(l.t, once, q)
		return serve(l.t, once, q), ok
	case "503":
		if q.token == "-" {
			return serve(l.t, l.empty, q), ok
		}
		return serve(l.t, l.closed, q), ok
	}
	q, ok = bad[op+" "+status]
	q.method = method
	return l.well.do(q), ok
}

// stall sends a request whose body never comes.
func (l *lab) stall(q request) answer {
	r, err := build(l.t.Context(), l.slow.server.URL, q)
	if err != nil {
		l.t.Fatal(err)
	}
	body := &never{stop: make(chan struct{})}
	defer body.Close()
	r.Body, r.ContentLength = body, 100
	rsp, err := l.slow.client.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	return read(l.t, rsp)
}

// never is a body that does not come.
type never struct {
	stop chan struct{}
	once sync.Once
}

func (n *never) Read([]byte) (int, error) { <-n.stop; return 0, http.ErrBodyReadAfterClose }
func (n *never) Close() error             { n.once.Do(func() { close(n.stop) }); return nil }

// Every status the description has can be had, and is answered in the shape
// described. That no other is, TestMain looks at in the end.
func TestOpenAPIStatuses_R003_R057(t *testing.T) {
	t.Parallel()
	doc := document(t)
	l := newLab(t)
	for _, name := range sorted(slices.Collect(maps.Keys(operations(doc)))) {
		op := operations(doc)[name]
		for _, status := range statuses(op) {
			a, ok := l.produce(name, status)
			if got := fmt.Sprint(a.status); !ok || got != status {
				t.Errorf("%s: nobody knows how to get %s (got %s %s)", name, status, got, a.body)
				continue
			}
			kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
			media := dig(doc, op, "responses", status, "content", kind)
			if media == nil {
				t.Errorf("%s %s: content type %q is not described", name, status, kind)
				continue
			}
			if kind == "application/json" {
				validate(t, doc, dig(doc, media, "schema"), a.body)
			}
			headers, _ := dig(doc, op, "responses", status, "headers").(map[string]any)
			for header := range headers {
				optional := status == "503" || header == "Preference-Applied"
				if a.header.Get(header) == "" && !optional {
					t.Errorf("%s %s lacks the header %s", name, status, header)
				}
			}
		}
	}
}

// The unexpected has the shape described, too.
func TestOpenAPIUnexpected_R089(t *testing.T) {
	t.Parallel()
	doc := document(t)
	h := rest.New(broken{err: fmt.Errorf("gone")}, newKeys(t), rest.Options{Swarm: "hive"})
	a := serve(t, h, request{path: "/tasks"})
	for name, op := range operations(doc) {
		schema := dig(doc, op, "responses", "default", "content", "application/json", "schema")
		if schema == nil {
			t.Errorf("%s does not describe the unexpected", name)
			continue
		}
		validate(t, doc, schema, a.body)
	}
}

// Only routes that need no key are described as such.
func TestOpenAPISecurity(t *testing.T) {
	t.Parallel()
	for name, op := range operations(document(t)) {
		_, open := op["security"]
		_, guarded := dig(nil, op, "responses").(map[string]any)["401"]
		if open == guarded {
			t.Errorf("%s: security %v, 401 %v", name, op["security"], guarded)
		}
	}
}

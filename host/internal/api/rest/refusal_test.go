package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
	"skep/host/internal/swarm"
	"skep/host/internal/telemetry/pulse"
)

// refusalCases are requests that a host refuses, each with what it shows of that. All have what a
// caller says as planted.
var refusalCases = []struct {
	cause, key string
	change     func(h *testHost)
	// first is sent before. With held a task runs until the end, drained stops the runtime before,
	// erased erases the tenant meanwhile, and the body of a stalled request never comes.
	first                          []request
	held, drained, erased, stalled bool
	request
	status int
}{
	{cause: "quota", key: "[tenants.default] messages_per_day", change: withQuota(swarm.Quota{MessagesPerDay: 1}), first: []request{plantedPost("t1")}, request: plantedPost("t2"), status: 429},
	{cause: "quota", key: "[tenants.default] tasks", change: withQuota(swarm.Quota{Tasks: 1}), held: true, request: plantedPost("t2"), status: 429},
	{cause: "quota", key: "[tenants.default] storage", change: withQuota(swarm.Quota{Storage: 1}), first: []request{plantedPost("t1")}, request: plantedPost("t2"), status: 429},
	{cause: "limit", key: "[limits] instances", change: func(h *testHost) { h.def.Limits.Instances = 1 }, first: []request{plantedPost("t1")}, request: request{method: "POST", path: "/message", token: bobToken, body: `{"body":"planted"}`}, status: 429},
	{cause: "rate", change: func(h *testHost) { h.opt.Rate = auth.Rate{Requests: 1, Per: time.Hour} }, first: []request{{path: "/whoami"}}, request: plantedPost("t"), status: 429},
	{cause: "credentials", request: request{path: "/whoami", token: "planted-token"}, status: 401},
	{cause: "role", request: request{path: "/skep/v1/tenants?planted=1"}, status: 401},
	{cause: "agent", request: request{method: "POST", path: "/message", body: `{"body":"planted","entrypoint":"planted"}`}, status: 400},
	{cause: "agent", request: request{method: "POST", path: "/message", body: `{"body":"planted","entrypoint":"math"}`}, status: 400},
	{cause: "too_large", change: func(h *testHost) { h.opt.MaxBody = 64 }, request: request{method: "POST", path: "/message", body: `{"body":"` + strings.Repeat("planted", 20) + `"}`}, status: 413},
	{cause: "invalid", request: request{method: "POST", path: "/message", body: `{"body":"x","subject":"::planted"}`}, status: 400},
	{cause: "not_found", request: request{path: "/skep/v1/tasks/planted"}, status: 404},
	{cause: "stopping", drained: true, request: plantedPost("t"), status: 503},
	{cause: "limit", key: "[limits] queue", change: func(h *testHost) { h.def.Limits.Queue = 1 }, held: true, request: plantedPost("t1"), status: 429},
	{cause: "streams", key: "[server] max_streams_per_principal", change: func(h *testHost) { h.opt.MaxStreamsPerPrincipal = 1 }, held: true, request: request{path: "/skep/v1/tasks/t1/events"}, status: 429},
	{cause: "streams", key: "[server] max_streams", change: func(h *testHost) { h.opt.MaxStreams = 1 }, held: true, request: request{path: "/skep/v1/tasks/t1/events"}, status: 503},
	{cause: "bodies", change: func(h *testHost) { h.opt.MaxHeldBodies = 8 }, request: plantedPost("t"), status: 503},
	{cause: "slow", change: func(h *testHost) { h.opt.Stall = time.Second }, stalled: true, request: request{method: "POST", path: "/message"}, status: 408},
	{cause: "comm_targets", change: withDepot, request: plantedRemotePost, status: 400},
	{cause: "conflict", first: []request{keyedPost("planted 1")}, request: keyedPost("planted 2"), status: 409},
	{cause: "method", request: request{method: "PUT", path: "/whoami?planted"}, status: 405},
	{cause: "wrong_host", change: func(h *testHost) { h.opt.Loopback = true }, request: request{path: "/whoami", host: "planted.example"}, status: 421},
	{cause: "erasing", erased: true, first: []request{plantedPost("t1")}, request: plantedPost("t"), status: 503},
	{cause: "store", change: refusingPosts(swarm.ErrUnavailable), request: plantedPost("t"), status: 503},
	{cause: "unavailable", change: refusingPosts(swarm.ErrFenced), request: plantedPost("t"), status: 503},
	{cause: "auth", change: func(h *testHost) { h.known = unavailableAuthenticator{} }, request: plantedPost("t"), status: 503},
}

var plantedRemotePost = request{method: "POST", path: "/interswarm/message", body: `{"user_token":"planted","body":"planted","targets":["stock@depot"]}`}

func keyedPost(body string) request { return postRequest(obj{"body": body}, "Idempotency-Key", "k") }

// withDepot has the entrypoint's swarm send mail to depot, to whose agents it may not write.
func withDepot(h *testHost) {
	h.def.Interswarm, h.def.Agents[0].Interswarm, h.forward = true, true, depotForwarder{}
}

// refusingPosts has the runtime refuse all posts, as with a store that does not answer.
func refusingPosts(err error) func(h *testHost) {
	return func(h *testHost) {
		h.wrap = func(rt rest.Runtime) rest.Runtime { return refusingRuntime{rt, fmt.Errorf("planted: %w", err)} }
	}
}

type refusingRuntime struct {
	rest.Runtime
	err error
}

func (r refusingRuntime) Submit(context.Context, swarm.Post) (*swarm.Receipt, error) {
	return nil, r.err
}

// beginErasure erases the host's tenant as far as until it is removed from the store, where the
// erasure fails once end is called.
func (h *testHost) beginErasure() (end func()) {
	begun, released, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- h.rt.EraseTenant(context.Background(), swarm.DefaultTenant, func() error {
			close(begun)
			<-released
			return errNotErased
		})
	}()
	select {
	case <-begun:
	case err := <-done:
		h.t.Fatal(err)
	}
	return func() {
		close(released)
		if err := <-done; !errors.Is(err, errNotErased) {
			h.t.Error(err)
		}
	}
}

var errNotErased = errors.New("the erasure is given up")

func plantedPost(task string) request {
	return postRequest(obj{"task_id": task, "subject": "planted", "body": "planted"})
}

func withQuota(q swarm.Quota) func(h *testHost) {
	return func(h *testHost) {
		h.limits.Tenants = swarm.NewTenantSet(map[string]swarm.Tenant{swarm.DefaultTenant: {Quota: q}})
	}
}

// A refusal shows its cause, request id, tenant and limit in the log at info and in the feed, at
// once or by way of the audit log, and nothing of what the caller has sent.
func TestRefusalsShown(t *testing.T) {
	t.Parallel()
	for _, c := range refusalCases {
		t.Run(c.cause+c.key, func(t *testing.T) {
			t.Parallel()
			log, audited := &bytes.Buffer{}, &auditRecorder{}
			h := newTestHost(t, withPulse, func(h *testHost) {
				h.opt.Logger, h.opt.Audit = slog.New(slog.NewJSONHandler(log, nil)), audited
				if c.change != nil {
					c.change(h)
				}
			})
			if c.held {
				defer h.script.open("end")
				defer h.send(t.Context(), postRequest(obj{"task_id": "t1", "stream": true, "body": calls("gate", obj{"name": "end"})})).Body.Close()
			}
			for _, q := range c.first {
				if a := h.do(q); a.status != http.StatusOK {
					t.Fatalf("%d %s", a.status, a.body)
				}
			}
			if c.drained {
				h.drain()
			}
			if c.erased {
				defer h.beginErasure()()
			}
			a := h.doRefused(c.request, c.stalled)
			if a.status != c.status {
				t.Fatalf("%d %s, want %d", a.status, a.body, c.status)
			}
			tenant := swarm.DefaultTenant
			if slices.Contains([]string{"credentials", "auth", "wrong_host", "method"}, c.cause) { // no caller is known
				tenant = ""
			}
			want := pulse.Event{Cause: c.cause, Key: c.key, Tenant: tenant, RequestID: a.header.Get("X-Request-Id")}
			if got := loggedRefusal(t, log.Bytes()); got != want {
				t.Errorf("the log has %+v, want %+v", got, want)
			}
			if got := shownRefusal(t, h, audited); got != want {
				t.Errorf("the feed has %+v, want %+v", got, want)
			}
		})
	}
}

// doRefused sends a request, whose body never comes if it is stalled.
func (h *testHost) doRefused(q request, stalled bool) answer {
	h.t.Helper()
	if !stalled {
		return h.do(q)
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	r, err := buildRequest(ctx, h.server.URL, q)
	if err != nil {
		h.t.Fatal(err)
	}
	body, end := io.Pipe()
	defer end.Close()
	r.Body, r.ContentLength = body, 100
	rsp, err := h.client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	return read(h.t, rsp)
}

// loggedRefusal is the one line about a refusal in a log.
func loggedRefusal(t *testing.T, log []byte) (e pulse.Event) {
	t.Helper()
	if n := bytes.Count(log, []byte("a request was refused")); n != 1 || bytes.Contains(log, []byte("planted")) {
		t.Errorf("%d lines about refusals, or with content:\n%s", n, log)
	}
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte(`"level":"INFO","msg":"a request was refused"`)) {
			if err := json.Unmarshal(line, &e); err != nil {
				t.Error(err)
			}
		}
	}
	return pulse.Event{Cause: e.Cause, Key: e.Key, Tenant: e.Tenant, RequestID: e.RequestID}
}

// shownRefusal is the one refusal that is in the feed, or that the audit log brings there.
func shownRefusal(t *testing.T, h *testHost, audited *auditRecorder) (got pulse.Event) {
	t.Helper()
	r := h.opt.Pulse.NewKeptReader("", pulse.Filter{Kinds: []pulse.Kind{pulse.Refusal}})
	defer r.Close()
	var all []pulse.Event
	for !r.Ended() {
		_, list, err := r.Next(t.Context())
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		for _, e := range list {
			all = append(all, e.Event)
		}
	}
	audited.mu.Lock()
	defer audited.mu.Unlock()
	for _, e := range audited.all {
		all = append(all, pulse.Event{Cause: e.Cause, Key: e.Key, Tenant: e.Tenant, RequestID: e.RequestID, Target: e.Target})
	}
	if len(all) != 1 {
		t.Fatalf("%d refusals: %+v", len(all), all)
	}
	if raw, _ := json.Marshal(all[0]); bytes.Contains(raw, []byte("planted")) {
		t.Errorf("content: %s", raw)
	}
	return pulse.Event{Cause: all[0].Cause, Key: all[0].Key, Tenant: all[0].Tenant, RequestID: all[0].RequestID}
}

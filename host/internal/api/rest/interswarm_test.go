package rest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// outboundAnswer is what POST /interswarm/message answers.
type outboundAnswer struct {
	Response mail.Message
	Events   []struct{ Event string }
}

// A target of this swarm is served here, whatever the text and the targets are
// called (R-062, R-063, S-20, G-07, G-18).
func TestInterswarmMessage_X12_X13(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for name, body := range map[string]string{
		"the reference client": `{"body":"hello","user_token":"u","subject":"s","targets":["boss"],"msg_type":"request","task_id":"NAME","routing_info":{},"stream":false,"ignore_stream_pings":false}`,
		"other names":          `{"message":"hello","user_token":"u","subject":"s","target_agent":"boss@hive","task_id":"NAME"}`,
		"nulls":                `{"body":"hello","message":null,"user_token":"u","subject":"s","targets":["boss"],"target_agent":null,"msg_type":null,"task_id":"NAME","routing_info":null,"stream":null,"ignore_stream_pings":null,"kwargs":5}`,
	} {
		a := h.do(request{method: "POST", path: "/interswarm/message", body: strings.Replace(body, "NAME", name, 1)})
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.status, a.body)
			continue
		}
		var got outboundAnswer
		a.json(t, &got)
		m := got.Response
		if m.Type != mail.Response || got.Events != nil || m.Payload.Sender != (mail.Address{Type: mail.Agent, Name: "boss"}) || m.Payload.Recipient() != (mail.Address{Type: mail.User, Name: "alice"}) ||
			m.Payload.TaskID != name || m.Payload.Subject != "s" || m.Payload.ID == "" || m.Payload.Body != "boss got [s] hello" {
			t.Errorf("%s: %s", name, a.body)
		}
		if a.header.Get("X-MAIL-Finish-Subject") != mail.SubjectTaskComplete {
			t.Errorf("%s: %v", name, a.header)
		}
	}
}

// A broadcast reaches each target in one task.
func TestInterswarmBroadcast(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.def.Agents[3].CanComplete = true })
	a := h.do(request{method: "POST", path: "/interswarm/message",
		body: `{"user_token":"u","body":"hello","targets":["boss","desk@hive","boss"],"msg_type":"broadcast","task_id":"t","stream":true}`})
	var got outboundAnswer
	a.json(t, &got)
	if a.status != http.StatusOK || len(got.Events) == 0 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	record := h.do(request{path: "/task?task_id=t"}).body
	for _, name := range []string{"boss", "desk"} {
		if n := strings.Count(record, `\"recipient\":\"`+name+`\"`); n != 1 {
			t.Errorf("%s was written to %d times: %s", name, n, record)
		}
	}
}

// With stream the answer has the task's log.
func TestInterswarmStream(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	a := h.do(request{method: "POST", path: "/interswarm/message", body: `{"user_token":"u","body":"hello","targets":["boss"],"stream":true}`})
	var got outboundAnswer
	a.json(t, &got)
	if n := len(got.Events); n < 3 || got.Events[0].Event != "new_message" || got.Events[n-1].Event != "task_complete" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A body that is a wrapper gets the bare message with its request's id. It
// is the caller's message, whatever its sender field is.
func TestInterswarmBareWrapper(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	bare := func(edits ...any) string {
		return strings.TrimSuffix(strings.TrimPrefix(wrapper(edits...), `{"message":`), "}")
	}
	a := h.do(request{method: "POST", path: "/interswarm/message", body: bare("auth_token", "u")})
	var m mail.Message
	a.json(t, &m)
	if a.status != http.StatusOK || m.Payload.ID != "0f3a7a34-9d0e-4f0c-9a55-6a6a0a3b8f21" || m.Payload.Recipient().Name != "alice" ||
		m.Payload.Body != "boss got [Stock check] Do we have valve 17?" || m.Payload.TaskID != "5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90" {
		t.Errorf("%d %s", a.status, a.body)
	}
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"no token":     {bare(), 401, "user token is required: the member 'auth_token' must not be empty"},
		"a null token": {bare("auth_token", nil), 401, "user token is required: the member 'auth_token' must not be empty"},
		"malformed":    {bare("auth_token", "u", "timestamp", "noon"), 400, "error parsing request: timestamp: must be an RFC 3339 date-time"},
		"an answer":    {bare("auth_token", "u", "msg_type", "response"), 400, "msg_type 'response' is not supported for interswarm send"},
		"another swarm": {bare("auth_token", "u", "target_swarm", "depot", "payload", obj{"task_id": "t", "request_id": m.Payload.ID,
			"sender": obj{"address_type": "user", "address": "alice"}, "recipient": obj{"address_type": "agent", "address": "stock"}, "subject": "s", "body": "b"}),
			503, "interswarm router not available"},
	} {
		a := h.do(request{method: "POST", path: "/interswarm/message", body: c.body})
		if a.status != c.status || a.body != detail(c.want) {
			t.Errorf("%s: %d %s, want %d %s", name, a.status, a.body, c.status, c.want)
		}
	}
}

// A task that the system ends is answered by the system; one that the host
// leaves, by 503.
func TestInterswarmEnds(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	a := h.do(request{method: "POST", path: "/interswarm/message", body: text(obj{"user_token": "u", "targets": []string{"boss"}, "body": calls("trap", obj{})})})
	var got outboundAnswer
	a.json(t, &got)
	if s := got.Response.Payload.Sender; s.Type != mail.System || s.Name != "hive" || a.header.Get("X-MAIL-Finish-Subject") != mail.SubjectAgentError {
		t.Errorf("%d %s", a.status, a.body)
	}
	for err, want := range map[error]int{swarm.ErrDraining: 503, swarm.ErrLimit: 429} {
		b := failingRuntime{err: err}
		h := definitionRuntime{b, &h.def}
		q := request{method: "POST", path: "/interswarm/message", body: `{"user_token":"u","body":"b","targets":["boss"]}`}
		if a := serve(t, newHandler(t, h), q); a.status != want {
			t.Errorf("%v: %d %s", err, a.status, a.body)
		}
	}
}

// lost is a runtime whose peers do not answer.
type lost struct{ definitionRuntime }

func (lost) Submit(_ context.Context, p swarm.Post) (*swarm.Receipt, error) {
	return &swarm.Receipt{Task: swarm.TaskKey{InstanceKey: p.Principal.Instance(p.Swarm), Task: "t"}}, nil
}

func (lost) Wait(context.Context, *swarm.Receipt) (swarm.Answer, error) {
	return swarm.Answer{State: swarm.StateFailed, Subject: mail.SubjectRouterError, Body: "no answer for 30s"}, nil
}

// What another swarm does not answer is 502 with the reason.
func TestInterswarmUnanswered_R084(t *testing.T) {
	t.Parallel()
	def := swarm.Definition{Name: "hive", Entrypoint: "boss", Interswarm: true}
	a := serve(t, newHandler(t, lost{definitionRuntime{def: &def}}), request{
		method: "POST", path: "/interswarm/message", body: `{"user_token":"u","body":"b","targets":["stock@depot"]}`,
	})
	if a.status != http.StatusBadGateway || a.body != detail("no answer for 30s") || a.header.Get("X-MAIL-Task-Id") != "t" ||
		a.header.Get("X-MAIL-Finish-Subject") != mail.SubjectRouterError {
		t.Errorf("%d %s %v", a.status, a.body, a.header)
	}
}

// A target that is refused keeps the message from all others; so does a message that
// goes in a circle.
func TestInterswarmRefused(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) {
		h.def.Interswarm, h.def.Agents[0].Interswarm, h.def.Agents[0].Targets = true, true, []string{"*@*"}
	})
	two := `{"user_token":"u","body":"b","msg_type":"broadcast","targets":["boss","stock@depot"],"task_id":"t"}`
	for name, c := range map[string]struct {
		body   string
		hops   string
		status int
		want   string
	}{
		"an unknown swarm": {two, "0", 404, `cannot send to 'stock@depot': no peer "depot": this host has no peers configured`},
		"a circle":         {two, "5", 400, "the message was handed on 5 times, at most 4: do the peers send it in a circle?"},
		"no address":       {strings.Replace(two, "stock@", "stock@@", 1), "4", 400, "targets: swarm: must not contain any of \"@:\""},
	} {
		a := h.do(request{method: "POST", path: "/interswarm/message", body: c.body, header: http.Header{"X-Mail-Hop": {c.hops}}})
		if a.status != c.status || a.body != detail(c.want) {
			t.Errorf("%s: %d %s, want %d %s", name, a.status, a.body, c.status, c.want)
		}
	}
	if a := h.do(request{path: "/tasks/t"}); a.status != http.StatusNotFound {
		t.Errorf("something was sent: %d %s", a.status, a.body)
	}
}

// A repeat under an idempotency key gets the first answer; another message does not.
func TestInterswarmRepeat(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	post := func(member string, value any) answer {
		fields := obj{"user_token": "u", "targets": []string{"boss"}, "body": "hello", "task_id": "t"}
		fields[member] = value
		return h.do(request{method: "POST", path: "/interswarm/message", header: http.Header{"Idempotency-Key": {"k"}}, body: text(fields)})
	}
	first, again := post("body", "hello"), post("body", "hello")
	if id := first.header.Get("X-MAIL-Task-Id"); first.status != http.StatusOK || id == "" || again.status != http.StatusOK || again.header.Get("X-MAIL-Task-Id") != id {
		t.Errorf("%d %s, then %d %s", first.status, first.body, again.status, again.body)
	}
	for member, value := range map[string]any{"body": "other", "subject": "s", "msg_type": "broadcast", "task_id": "u", "targets": []string{"boss@hive"}} {
		if a := post(member, value); a.status != http.StatusConflict {
			t.Errorf("%s = %v: %d %s", member, value, a.status, a.body)
		}
	}
}

package rest_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// deadLetterRuntime is a runtime that has dead letters and takes wrappers.
type deadLetterRuntime struct {
	definitionRuntime
	letters []swarm.DeadLetter
	resent  *[]string
	got     *[]swarm.Incoming
	refuses error
	// away collects the recorded refusals; noteless is the error of recording
	// one.
	away     *[]string
	noteless error
}

func (deadLetterRuntime) KnowsTenant(context.Context, string) (bool, error) { return true, nil }

func (l deadLetterRuntime) DeadLetters(_ context.Context, tenant string, before int64, limit int) (page []swarm.DeadLetter, err error) {
	for _, d := range l.letters {
		if d.Task.Tenant == tenant && (before == 0 || d.Place < before) && len(page) < limit {
			page = append(page, d)
		}
	}
	return page, l.err
}

func (l deadLetterRuntime) ResendDeadLetter(_ context.Context, tenant, id string) (swarm.DeadLetter, error) {
	for _, d := range l.letters {
		if d.Task.Tenant == tenant && d.ID == id {
			*l.resent = append(*l.resent, id)
			return d, nil
		}
	}
	return swarm.DeadLetter{}, &swarm.Refusal{Kind: swarm.ErrNotFound, Text: "there is no dead letter '" + id + "'"}
}

func (l deadLetterRuntime) Receive(_ context.Context, in swarm.Incoming) (swarm.IncomingReceipt, error) {
	*l.got = append(*l.got, in)
	return swarm.IncomingReceipt{Task: swarm.TaskKey{Task: in.Wrapper.Payload.TaskID}, Runner: "swarm:depot@hive"}, l.refuses
}

func (l deadLetterRuntime) RecordRefusedWrapper(_ context.Context, in swarm.Incoming, reason string) error {
	*l.away = append(*l.away, in.Peer+" "+in.Wrapper.Payload.TaskID+" "+reason)
	return l.noteless
}

func newDeadLetterRuntime() deadLetterRuntime {
	l := deadLetterRuntime{
		definitionRuntime: definitionRuntime{def: &swarm.Definition{Name: "hive", Interswarm: true}},
		resent:            &[]string{}, got: &[]swarm.Incoming{}, away: &[]string{},
	}
	for n := int64(3); n > 0; n-- {
		id := mail.NewUUID([16]byte{byte(n)})
		l.letters = append(l.letters, swarm.DeadLetter{
			Place: n, Task: swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "default", Swarm: "hive", Instance: "user:alice"}, Task: "t"},
			OutboxMessage: swarm.OutboxMessage{ID: id, Peer: "depot", Since: time.Unix(1e9, 0), Dead: &swarm.DeliveryFailure{At: time.Unix(1e9+30, 0), Reason: "no answer"}, Message: mail.Message{
				ID: id, Timestamp: mail.FormatTime(time.Unix(1e9, 0)), Type: mail.Request, Payload: mail.Payload{
					TaskID: "t", ID: id, Sender: mail.Address{Type: mail.Agent, Name: "boss"},
					Recipients: []mail.Address{{Type: mail.Agent, Name: "stock@depot"}}, Subject: "s", Body: "b",
				},
			}},
		})
	}
	return l
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	l := newDeadLetterRuntime()
	h := newHandler(t, l)
	var read []string
	for path := "/skep/v1/dead-letters?limit=2"; path != ""; {
		a := serve(t, h, request{path: path, token: adminToken})
		judge(t, request{path: path}, a)
		var page struct {
			Letters []struct {
				ID, Peer, Reason, Died string
				Message                mail.Message
			} `json:"dead_letters"`
			Next *string
		}
		a.json(t, &page)
		for _, d := range page.Letters {
			read = append(read, d.ID)
			if d.Peer != "depot" || d.Reason != "no answer" || d.Message.Payload.Body != "b" || d.Died == "" {
				t.Errorf("%+v", d)
			}
		}
		if path = ""; page.Next != nil {
			path = "/skep/v1/dead-letters?limit=2&before=" + *page.Next
		}
	}
	if len(read) != 3 || read[0] != l.letters[0].ID || read[2] != l.letters[2].ID {
		t.Errorf("read %q", read)
	}
	for _, c := range []struct {
		method, path, token string
		status              int
	}{
		{"GET", "/skep/v1/dead-letters", aliceToken, 401},
		{"GET", "/skep/v1/dead-letters?before=x", adminToken, 400},
		{"GET", "/skep/v1/dead-letters?tenant=acme", operatorToken, 200},
		{"GET", "/skep/v1/dead-letters?tenant=acme", adminToken, 401},
		{"GET", "/skep/v1/dead-letters?tenant=default", adminToken, 200},
		{"POST", "/skep/v1/dead-letters/" + read[0] + "/resend?tenant=acme", adminToken, 401},
		{"POST", "/skep/v1/dead-letters/none/resend", adminToken, 404},
		{"POST", "/skep/v1/dead-letters/" + read[0] + "/resend?tenant=acme", operatorToken, 404},
		{"POST", "/skep/v1/dead-letters/" + read[0] + "/resend", aliceToken, 401},
		{"POST", "/skep/v1/dead-letters/" + read[0] + "/resend", adminToken, 200},
	} {
		q := request{method: c.method, path: c.path, token: c.token}
		a := serve(t, h, q)
		if a.status != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, a.status, a.body, c.status)
		}
		judge(t, q, a)
	}
	if len(*l.resent) != 1 || (*l.resent)[0] != read[0] {
		t.Errorf("resent %q", *l.resent)
	}
}

// A valid wrapper reaches the runtime with its sender and its hops. Refusals of
// the runtime reach the caller, and so does a circle of swarms.
func TestTakenWrapper(t *testing.T) {
	t.Parallel()
	l := newDeadLetterRuntime()
	h := newHandler(t, l)
	q := request{method: "POST", path: "/interswarm/forward", token: agentToken, body: wrapper(), header: http.Header{"X-Mail-Hop": {"2"}}}
	a := serve(t, h, q)
	judge(t, q, a)
	if a.status != 200 || a.body != `{"swarm":"hive","task_id":"5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90","status":"success","local_runner":"swarm:depot@hive"}` {
		t.Fatalf("%d %q", a.status, a.body)
	}
	in := (*l.got)[0]
	if in.Peer != "depot" || in.Swarm != "hive" || in.Back || in.Hops != 2 || in.Principal.Role != mail.RoleSwarm {
		t.Errorf("%+v", in)
	}
	for hops, want := range map[string]int{"5": 400, "x": 400, "-1": 400, "4": 200} {
		q.header = http.Header{"X-Mail-Hop": {hops}}
		if a := serve(t, h, q); a.status != want {
			t.Errorf("%s hops: %d %s", hops, a.status, a.body)
		}
	}
	for kind, want := range map[error]int{swarm.ErrForbidden: 401, swarm.ErrConflict: 409, swarm.ErrNotFound: 404, swarm.ErrInvalid: 400, swarm.ErrLimit: 429, swarm.ErrDraining: 503} {
		l.refuses = &swarm.Refusal{Kind: kind, Text: "no"}
		back := request{method: "POST", path: "/interswarm/back", token: agentToken, body: wrapper()}
		a := serve(t, newHandler(t, l), back)
		judge(t, back, a)
		if a.status != want {
			t.Errorf("%v: %d %s", kind, a.status, a.body)
		}
	}
}

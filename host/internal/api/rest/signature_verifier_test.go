package rest_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/rest"
	"skep/host/internal/peer/signature"
	"skep/host/internal/swarm"
)

// pinnedVerifier has the key of depot, and accepts other swarms unsigned.
type pinnedVerifier struct{ key signature.PublicKey }

func (p pinnedVerifier) Verify(wrapper []byte, from, to string, back bool, now time.Time) error {
	if from != "depot" {
		return nil
	}
	return p.key.Verify(wrapper, signature.Route{Back: back, Target: to}, now)
}

// signBody signs the wrapper of a body.
func signBody(t *testing.T, k signature.Key, body string, way signature.Route, at time.Time) string {
	t.Helper()
	var b struct{ Message obj }
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatal(err)
	}
	signed, err := k.Sign([]byte(text(b.Message)), way, at)
	if err != nil {
		t.Fatal(err)
	}
	b.Message["metadata"] = obj{signature.Member: signed}
	return text(obj{"message": b.Message})
}

// Of a swarm with a key, only what it has just signed for this route of this swarm
// counts. Whatever else is refused with 401 and a line in the audit log, before
// the task is looked at.
func TestSignedWrappers(t *testing.T) {
	t.Parallel()
	k, other, now := signature.NewKey(), signature.NewKey(), time.Unix(1_700_000_000, 0)
	l, ears := newDeadLetterRuntime(), &auditRecorder{}
	h := rest.New(l, newKeys(t), rest.Options{
		Swarm: "hive", Signatures: pinnedVerifier{k.PublicKey()}, Audit: ears, Now: func() time.Time { return now },
	})
	forward, back := signature.Route{Target: "hive"}, signature.Route{Back: true, Target: "hive"}
	good := signBody(t, k, wrapper(), forward, now)
	for name, c := range map[string]struct {
		path, body string
		status     int
		want       string
	}{
		"signed":               {"forward", good, 200, `"success"`},
		"signed for back":      {"back", signBody(t, k, wrapper(), back, now), 200, `"success"`},
		"with a token":         {"forward", strings.Replace(good, `"auth_token":""`, `"auth_token":"t"`, 1), 200, `"success"`},
		"unsigned":             {"forward", wrapper(), 401, "invalid signature: the message does not count as one of swarm 'depot': it is not signed"},
		"by another key":       {"forward", signBody(t, other, wrapper(), forward, now), 401, "another key than " + k.PublicKey().String()},
		"for another swarm":    {"forward", signBody(t, k, wrapper("target_swarm", "yard"), signature.Route{Target: "yard"}, now), 401, "signed for another swarm or route"},
		"by the other route":   {"back", good, 401, "signed for another swarm or route"},
		"with a changed byte":  {"forward", strings.Replace(good, "valve 17", "valve 18", 1), 401, "it was changed"},
		"older than counts":    {"forward", signBody(t, k, wrapper(), forward, now.Add(-signature.Window-time.Second)), 401, "look at both clocks"},
		"younger than counts":  {"forward", signBody(t, k, wrapper(), forward, now.Add(signature.Window+time.Second)), 401, "look at both clocks"},
		"two of one name":      {"forward", strings.Replace(good, `"message_id"`, `"message_id":"x","message_id"`, 1), 400, "duplicate name"},
		"what is no signature": {"forward", wrapper("metadata", obj{signature.Member: 5}), 401, "is no string"},
	} {
		ears.recorded()
		*l.got, *l.away = nil, nil
		a := serve(t, h, request{method: http.MethodPost, path: "/interswarm/" + c.path, token: agentToken, body: c.body})
		if a.status != c.status || !strings.Contains(a.body, c.want) || (len(*l.got) == 1) != (c.status == 200) {
			t.Errorf("%s: %d %s, want %d %s; %d received", name, a.status, a.body, c.status, c.want, len(*l.got))
		}
		if told := *l.away; (len(told) == 1) != (c.status == 401) || len(told) == 1 && !strings.HasPrefix(told[0], "depot 5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90 invalid signature: ") {
			t.Errorf("%s: the task is told %q", name, told)
		}
		audited := ears.recorded()
		want := "refused|request|POST /interswarm/" + c.path + "|default|agent:depot|invalid signature: "
		if c.status == 401 && (len(audited) != 1 || !strings.HasPrefix(audited[0], want)) || c.status == 200 && len(audited) != 0 {
			t.Errorf("%s: audited %q", name, audited)
		}
	}
}

// A failure to record in the task's log changes nothing for the caller.
func TestRefusedSignatureNotRecorded(t *testing.T) {
	t.Parallel()
	l := newDeadLetterRuntime()
	l.noteless = errors.New("the disk is full")
	h := rest.New(l, newKeys(t), rest.Options{Swarm: "hive", Signatures: pinnedVerifier{signature.NewKey().PublicKey()}})
	a := serve(t, h, request{method: http.MethodPost, path: "/interswarm/back", token: agentToken, body: wrapper()})
	if a.status != 401 || strings.Contains(a.body, "disk") || len(*l.away) != 1 {
		t.Errorf("%d %s, told %q", a.status, a.body, *l.away)
	}
}

// The headers have the trace of a message, or else routing_info.
func TestRoutedTrace(t *testing.T) {
	t.Parallel()
	const a, b = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	with := func(routing any) string {
		var body struct{ Message struct{ Payload obj } }
		if err := json.Unmarshal([]byte(wrapper()), &body); err != nil {
			t.Fatal(err)
		}
		body.Message.Payload["routing_info"] = routing
		return wrapper("payload", body.Message.Payload)
	}
	for name, c := range map[string]struct {
		header http.Header
		body   string
		want   swarm.Trace
	}{
		"carried":       {nil, with(obj{"remote_swarm": "hive", "traceparent": a, "tracestate": "x=1"}), swarm.ParseTrace(a, "x=1")},
		"both":          {http.Header{"Traceparent": {b}, "Tracestate": {"y=1", "z=2"}}, with(obj{"traceparent": a, "tracestate": "x=1"}), swarm.ParseTrace(b, "y=1,z=2")},
		"a state alone": {http.Header{"Tracestate": {"y=1"}}, with(obj{"traceparent": a, "tracestate": "x=1"}), swarm.ParseTrace(a, "x=1")},
		"two parents":   {http.Header{"Traceparent": {a, b}}, wrapper(), swarm.Trace{}},
		"none":          {nil, wrapper(), swarm.Trace{}},
		"malformed":     {nil, with(obj{"traceparent": "x", "tracestate": "x=1"}), swarm.Trace{}},
		"numbers":       {nil, with(obj{"traceparent": 5}), swarm.Trace{}},
		"no state":      {nil, with(obj{"traceparent": a, "tracestate": 5}), swarm.ParseTrace(a, "")},
		"a null":        {nil, with(nil), swarm.Trace{}},
		"later version": {http.Header{"Traceparent": {"cc" + a[2:] + "-what"}}, wrapper(), swarm.ParseTrace(a, "")},
		"zeros":         {http.Header{"Traceparent": {"00-" + strings.Repeat("0", 32) + a[35:]}}, wrapper(), swarm.Trace{}},
	} {
		l := newDeadLetterRuntime()
		q := request{method: http.MethodPost, path: "/interswarm/forward", token: agentToken, body: c.body, header: c.header}
		if got := serve(t, newHandler(t, l), q); got.status != http.StatusOK || (*l.got)[0].Trace != c.want {
			t.Errorf("%s: %d %s, trace %q, want %q", name, got.status, got.body, (*l.got)[0].Trace, c.want)
		}
	}
}

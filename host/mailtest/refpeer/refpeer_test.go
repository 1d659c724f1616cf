package refpeer

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/mailtest/refclient"
)

func start(t *testing.T, opt Options) *Peer {
	t.Helper()
	opt.Name, opt.Entrypoint, opt.Agents = "beta", "supervisor", []string{"supervisor", "analyst"}
	opt.Keys = map[string]string{"a-key-of-hive": "hive"}
	p, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// The bytes of a call, as appendix A has them: with nulls and the token in its
// body.
func TestBytes(t *testing.T) {
	t.Parallel()
	p := start(t, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		var text strings.Builder
		r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &text)))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		got <- text.String()
	}()
	p.remotes["hive"] = remote{"http://" + l.Addr().String(), "a-key-at-hive"}
	if status, err := p.Request(p.Begin("u9", "T"), "supervisor", "boss@hive", "s", "é"); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	want := "POST /interswarm/forward HTTP/1.1\r\nHost: ADDRESS\r\nAuthorization: Bearer a-key-at-hive\r\nUser-Agent: MAIL-Interswarm-Router/beta\r\n" +
		"Accept: */*\r\nAccept-Encoding: gzip, deflate\r\nContent-Length: LENGTH\r\nContent-Type: application/json\r\n\r\n" +
		`{"message": {"message_id": "ID", "source_swarm": "beta", "target_swarm": "hive", "timestamp": "TIME", "payload": {"task_id": "T", "request_id": "ID", ` +
		`"sender": {"address_type": "agent", "address": "supervisor@beta"}, "recipient": {"address_type": "agent", "address": "boss@hive"}, "subject": "s", "body": "\u00e9", ` +
		`"sender_swarm": null, "recipient_swarm": null, "routing_info": {"remote_swarm": "hive"}}, "msg_type": "request", "auth_token": "a-key-at-hive", "metadata": {}, ` +
		`"task_owner": "user:u9@beta", "task_contributors": ["user:u9@beta"]}}`
	if diff := cmp.Diff(want, plain(<-got)); diff != "" {
		t.Error(diff)
	}
}

// plain gives what differs from run to run a name.
func plain(text string) string {
	for re, name := range map[string]string{
		`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`: "ID", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00`: "TIME",
		`127\.0\.0\.1:\d+`: "ADDRESS", `Content-Length: \d+`: "Content-Length: LENGTH",
	} {
		text = regexp.MustCompile(re).ReplaceAllString(text, name)
	}
	return text
}

// betaWrapper is a wrapper for beta.
func betaWrapper(change func(refclient.Object) refclient.Object) string {
	w := refclient.Object{
		{Name: "message_id", Value: "m"}, {Name: "source_swarm", Value: "hive"}, {Name: "target_swarm", Value: "beta"}, {Name: "timestamp", Value: "t"},
		{Name: "payload", Value: refclient.Object{{Name: "task_id", Value: "T"}, {Name: "recipient", Value: agent("analyst@beta")}, {Name: "subject", Value: "s"}}},
		{Name: "msg_type", Value: "request"}, {Name: "auth_token", Value: ""}, {Name: "metadata", Value: refclient.Object{}},
		{Name: "task_owner", Value: "user:u@hive"}, {Name: "task_contributors", Value: []string{"user:u@hive"}},
	}
	return refclient.Dumps(refclient.Object{{Name: "message", Value: change(w)}})
}

func with(name string, value any) func(refclient.Object) refclient.Object {
	return func(w refclient.Object) refclient.Object {
		w = slices.Clone(w)
		i := slices.IndexFunc(w, func(m refclient.Member) bool { return m.Name == name })
		w[i].Value = value
		return w
	}
}

func without(name string) func(refclient.Object) refclient.Object {
	return func(w refclient.Object) refclient.Object {
		return slices.DeleteFunc(slices.Clone(w), func(m refclient.Member) bool { return m.Name == name })
	}
}

func same(w refclient.Object) refclient.Object { return w }

// What the reference refuses, in its order and with its statuses (contract 1.3).
func TestRefusals(t *testing.T) {
	t.Parallel()
	p := start(t, Options{})
	to := func(name string) func(refclient.Object) refclient.Object {
		return with("payload", refclient.Object{{Name: "task_id", Value: "T2"}, {Name: "recipient", Value: agent(name)}})
	}
	back := []string{"user:u@hive", "swarm:hive@beta"}
	for _, c := range []struct {
		way, auth, body, want string
	}{
		{"back", "Bearer a-key-of-hive", betaWrapper(with("task_contributors", back)), `400 {"detail":"task is not running"}`},
		{"forward", "", betaWrapper(same), `401 {"detail":"no API key provided"}`},
		{"forward", "bearer a-key-of-hive", betaWrapper(same), `401 {"detail":"invalid API key format"}`},
		{"forward", "Bearer another", betaWrapper(same), `401 {"detail":"invalid API key"}`},
		{"forward", "Bearer a-key-of-hive", "{", `500 Internal Server Error`},
		{"forward", "Bearer a-key-of-hive", "{}", `400 {"detail":"parameter 'message' is required"}`},
		{"forward", "Bearer a-key-of-hive", betaWrapper(without("auth_token")), `400 {"detail":"parameter 'auth_token' is required"}`},
		{"forward", "Bearer a-key-of-hive", betaWrapper(with("metadata", nil)), `400 {"detail":"parameter 'metadata' must be a dict, got NoneType"}`},
		{"forward", "Bearer a-key-of-hive", betaWrapper(with("target_swarm", "x")), `500 {"detail":"server failed to receive interswarm forward message: message is for swarm 'x'"}`},
		{"forward", "Bearer a-key-of-hive", betaWrapper(to("all@beta")), `500 {"detail":"server failed to receive interswarm forward message: unknown agent 'all'"}`},
		{"forward", "Bearer a-key-of-hive", betaWrapper(same), `200 {"local_runner":"swarm:hive@beta","status":"success","swarm":"beta","task_id":"T"}`},
		{"forward", "Bearer a-key-of-hive", betaWrapper(same), `500 {"detail":"server failed to receive interswarm forward message: a task with ID 'T' already exists in swarm memory"}`},
		{"back", "Bearer a-key-of-hive", betaWrapper(with("task_contributors", back)), `200 {"local_runner":"swarm:hive@beta","status":"success","swarm":"beta","task_id":"T"}`},
		{"back", "Bearer a-key-of-hive", betaWrapper(with("task_contributors", []string{"boss:hive@beta"})), `400 {"detail":"invalid role: boss"}`},
		{"back", "Bearer a-key-of-hive", betaWrapper(with("task_contributors", []string{"user:x@beta"})), `404 {"detail":"no mail instance found for contributor: user:x@beta"}`},
		{"back", "Bearer a-key-of-hive", betaWrapper(same), `404 {"detail":"no mail instance found for task with id T"}`},
		{"back", "Bearer a-key-of-hive", betaWrapper(func(w refclient.Object) refclient.Object {
			return with("task_owner", "user:eve@hive")(with("task_contributors", back)(w))
		}), `500 {"detail":"server failed to receive interswarm back message: task owner mismatch: 'user:eve@hive'"}`},
	} {
		p.wantAnswer(t, c.way, c.auth, c.body, c.want)
	}
	p.Restart()
	if p.Contributors(Task{"swarm:hive", "T"}) != nil {
		t.Error("a task outlives the restart")
	}
}

// wantAnswer makes one call and looks at its answer.
func (p *Peer) wantAnswer(t *testing.T, way, auth, body, want string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/interswarm/"+way, strings.NewReader(body))
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	w := httptest.NewRecorder()
	p.server.Handler.ServeHTTP(w, r)
	if got := fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String())); got != want {
		t.Errorf("%s %s: %s, want %s", way, body, got, want)
	}
}

// After a restart a task is known by its contributors, whatever the route: the one
// that the reference takes is a forward whose contributors do not have the instance.
// A forward that fails has bound the task already.
func TestForgets(t *testing.T) {
	t.Parallel()
	p := start(t, Options{})
	known := betaWrapper(with("task_contributors", []string{"user:u@hive", "swarm:hive@beta"}))
	for _, c := range []struct{ way, body, want string }{
		{"back", known, `400 {"detail":"task is not running"}`},
		{"forward", known, `500 {"detail":"server failed to receive interswarm forward message: a task with ID 'T' does not exist in swarm memory"}`},
		{"back", known, `500 {"detail":"server failed to receive interswarm back message: a task with ID 'T' does not exist in swarm memory"}`},
		{"forward", betaWrapper(same), `200 {"local_runner":"swarm:hive@beta","status":"success","swarm":"beta","task_id":"T"}`},
		{"back", known, `200 {"local_runner":"swarm:hive@beta","status":"success","swarm":"beta","task_id":"T"}`},
	} {
		p.wantAnswer(t, c.way, "Bearer a-key-of-hive", c.body, c.want)
	}
}

// Registration reads the root of the base URL, and fails without an object.
func TestRegister(t *testing.T) {
	t.Parallel()
	p := start(t, Options{})
	other := start(t, Options{})
	if err := p.Register("gamma", other.URL(), "k"); err != nil {
		t.Error(err)
	}
	for _, says := range []string{`{"protocol_version":"1.3","swarm":"gamma"}`, `{"swarm":{"name":"gamma"}}`, `{}`} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, says) }))
		if err := p.Register("delta", s.URL, "k"); err == nil {
			t.Errorf("registered what says %s", says)
		}
		s.Close()
	}
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if err := p.Register("delta", s.URL, "k"); err == nil {
		t.Error("registered what is not found")
	}
	if status, err := p.Response(p.Begin("u", "T"), "analyst", "x@delta", "s", "b"); err == nil {
		t.Error("sent to an unknown swarm:", status)
	}
}

package agent_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"skep/host/client"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

const spanFile = `schema = 1
[swarm]
name = "shop"
entrypoint = "lead"
[agents.lead]
source = "bundled:script"
enable_entrypoint = true
can_complete_tasks = true
comm_targets = ["clerk"]
actions = ["echo"]
allow = { llm = ["default"], http = ["%[2]s"], http_private = true }
[agents.clerk]
source = "bundled:script"
comm_targets = ["lead"]
[actions.echo]
source = "file:conform.wasm"
[models.default]
provider = "script"
cassette = "rules.toml"
[telemetry]
%[1]s
`

// startSpans starts a host with lines in [telemetry], whose agents may fetch from web.
func startSpans(t *testing.T, telemetry, web string) *hosttest.Host {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"swarm.toml": []byte(fmt.Sprintf(spanFile, telemetry, web)), "conform.wasm": guests.Bytes(t, "testguests/conform"),
		"rules.toml": []byte("[[rule]]\nlast = [{ role = \"user\", match = \".\" }]\ntext = \"planted: an answer\"\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := hosttest.Start(t, filepath.Join(dir, "swarm.toml"), t.TempDir())
	h.StopAtEnd(t)
	return h
}

// tracedBy adds a traceparent to requests.
type tracedBy string

// RoundTrip implements [http.RoundTripper].
func (by tracedBy) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", string(by))
	r.Header.Set("Tracestate", "vendor=1")
	return http.DefaultTransport.RoundTrip(r)
}

const planted = "planted: a text of the user's"

// spanSteps call an action and a model, and ask another agent.
var spanSteps = hosttest.Script(
	hosttest.Step{"echo", hosttest.Args{"planted": planted}},
	hosttest.Step{"llm.chat", hosttest.Args{"model": "default", "messages": []any{hosttest.Args{"role": "user", "content": planted}}}},
	hosttest.Step{"llm.chat", hosttest.Args{"model": planted, "messages": []any{hosttest.Args{"role": "user", "content": planted}}}},
	hosttest.Step{"send_request", hosttest.Args{"target": "clerk", "subject": planted, "body": planted}},
	hosttest.Step{"await_message", hosttest.Args{}},
)

// A collector gets a task's trace below its caller's: each turn, call of a model and action
// once, and no content.
func TestSpansOfTask(t *testing.T) {
	t.Parallel()
	collector := hosttest.StartCollector(t)
	h := startSpans(t, fmt.Sprintf("endpoint = %q\nheader_value = \"Bearer of-the-collector\"", collector.URL), collector.URL)
	const caller, callerSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	c, err := client.New(client.Options{URL: "http://" + h.Addr(), Token: h.Key, HTTP: &http.Client{Transport: tracedBy("00-" + caller + "-" + callerSpan + "-01")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.PostMessage(t.Context(), client.Post{Task: "t1", Subject: planted, Body: spanSteps}); err != nil {
		t.Fatal(err)
	}
	spans := collector.Wait(t, "invoke_workflow shop", 1)
	count := map[string]int{}
	for _, s := range spans {
		count[s.Name]++
		if s.Trace != caller || s.Attributes["gen_ai.conversation.id"] != "t1" || s.End < s.Start {
			t.Errorf("%+v", s)
		}
	}
	want := map[string]int{"invoke_workflow shop": 1, "invoke_agent lead": 2, "invoke_agent clerk": 1, "chat default": 1, "chat": 1, "execute_tool echo": 1}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Fatalf("%v, want %v", count, want)
	}
	one := func(name string, n int) hosttest.Span { return hosttest.Named(spans, name)[n] }
	task, first, clerk := one("invoke_workflow shop", 0), one("invoke_agent lead", 0), one("invoke_agent clerk", 0)
	for _, c := range []struct{ below, above string }{
		{task.Parent, callerSpan}, {first.Parent, task.ID}, {clerk.Parent, first.ID}, {one("invoke_agent lead", 1).Parent, clerk.ID},
		{one("chat default", 0).Parent, first.ID}, {one("execute_tool echo", 0).Parent, first.ID},
	} {
		if c.below != c.above {
			t.Errorf("a span lies below %s, want %s", c.below, c.above)
		}
	}
	chat := one("chat default", 0)
	for name, want := range map[string]string{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "script", "gen_ai.request.model": "default"} {
		if chat.Attributes[name] != want {
			t.Errorf("%s is %q in %+v", name, chat.Attributes[name], chat)
		}
	}
	if refused := one("chat", 0); !refused.Failed || refused.Attributes["error.type"] != "DENIED" {
		t.Errorf("%+v", refused)
	}
	raw, headers := collector.Received()
	if bytes.Contains(raw, []byte("planted")) {
		t.Error("the trace has content")
	}
	if got := headers[0].Get("Authorization"); got != "Bearer of-the-collector" {
		t.Errorf("the collector is shown %q", got)
	}
}

// A trace that its caller does not keep is not sent, nor one that begins here beyond the ratio.
func TestSpansNotSampled(t *testing.T) {
	t.Parallel()
	collector := hosttest.StartCollector(t)
	h := startSpans(t, fmt.Sprintf("endpoint = %q\nsample = 0", collector.URL), collector.URL)
	post := func(task, traceparent string) {
		c, err := client.New(client.Options{URL: "http://" + h.Addr(), Token: h.Key, HTTP: &http.Client{Transport: tracedBy(traceparent)}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.PostMessage(t.Context(), client.Post{Task: task, Body: spanSteps}); err != nil {
			t.Fatal(err)
		}
	}
	post("own", "")
	post("broken", "00-xyz-b7ad6b7169203331-01")
	post("not kept", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
	post("kept", "00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203331-01")
	for _, s := range collector.Wait(t, "invoke_workflow shop", 1) {
		if s.Attributes["gen_ai.conversation.id"] != "kept" {
			t.Errorf("%+v", s)
		}
	}
}

// A turn whose task is cancelled under it is rolled back, and no span tells of it.
func TestSpansOfCancelledTask(t *testing.T) {
	t.Parallel()
	collector, asked := hosttest.StartCollector(t), make(chan struct{}, 1)
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer web.Close()
	h := startSpans(t, fmt.Sprintf("endpoint = %q", collector.URL), web.URL)
	c := h.Client(t)
	body := hosttest.Script(hosttest.Step{"http.fetch", hosttest.Args{"method": "GET", "url": web.URL}}, hosttest.Step{"task_complete", hosttest.Args{"finish_message": "x"}})
	if _, err := c.PostAsync(t.Context(), client.Post{Task: "t", Body: body}); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := c.Cancel(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	spans := collector.Wait(t, "invoke_workflow shop", 1)
	if len(spans) != 1 || spans[0].Attributes["skep.task.state"] != "cancelled" || !spans[0].Failed {
		t.Errorf("%+v", spans)
	}
}

// A collector gets the lines of the host's log, and no text of a user's; with logs = false it gets none.
func TestLogsOfHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setting string
		sent    bool
	}{"by default": {"", true}, "off": {"logs = false\n", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collector := hosttest.StartCollector(t)
			h, log := hosttest.StartText(t, hosttest.ScriptSwarm+fmt.Sprintf("[telemetry]\nendpoint = %q\n", collector.URL)+c.setting, nil)
			body := hosttest.Script(hosttest.Step{"kv.set", hosttest.Args{"key": "k", "value": planted}}, hosttest.Step{"trap", hosttest.Args{}})
			h.Key = hosttest.ScriptKey
			if _, err := h.Client(t).PostMessage(t.Context(), client.Post{Task: "t1", Subject: planted, Body: body}); err != nil {
				t.Fatal(err)
			}
			if err := h.Stop(); err != nil { // what waits is sent at the end
				t.Fatal(err)
			}
			failed := slices.ContainsFunc(collector.Logs(), func(r hosttest.LogRecord) bool {
				return r.Body == "a turn has failed" && r.Severity == "INFO" && r.Attributes["task_id"] == "t1"
			})
			if n := bytes.Count(log.Bytes(), []byte("\n")); c.sent && n != len(collector.Logs()) {
				t.Errorf("the log has %d lines, the collector %d", n, len(collector.Logs()))
			}
			if failed != c.sent || len(collector.Logs()) > 0 != c.sent {
				t.Errorf("the collector has %v", collector.Logs())
			}
			if raw, _ := collector.Received(); bytes.Contains(raw, []byte("planted")) {
				t.Error("the log has content")
			}
		})
	}
}

// Without an endpoint in the file nothing is sent, whatever the environment names.
func TestSpansWithoutEndpoint(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+l.Addr().String())
	called := make(chan struct{})
	go func() {
		if _, err := l.Accept(); err == nil {
			close(called)
		}
	}()
	h := startSpans(t, "", "http://127.0.0.1:1")
	if _, err := h.Client(t).PostMessage(t.Context(), client.Post{Task: "t", Body: spanSteps}); err != nil {
		t.Fatal(err)
	}
	if err := h.Stop(); err != nil { // what waits is sent at the end
		t.Fatal(err)
	}
	select {
	case <-called:
		t.Error("a host without an endpoint calls the collector of the environment")
	default:
	}
}

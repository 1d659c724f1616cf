package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeHost serves a handler and returns a client of it.
func fakeHost(t *testing.T, o Options, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	o.URL = srv.URL
	return newClient(t, o)
}

func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// wire answers calls without a network.
type wire func(*http.Request) (*http.Response, error)

func (f wire) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// wired returns a client whose calls f answers. It can be used in a bubble.
func wired(t *testing.T, o Options, f wire) *Client {
	t.Helper()
	o.URL, o.HTTP = cmp.Or(o.URL, "http://host.test"), &http.Client{Transport: f}
	return newClient(t, o)
}

func response(status int, header map[string]string, body string) *http.Response {
	rsp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	rsp.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		rsp.Header.Set(name, value)
	}
	return rsp
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "host", "127.0.0.1:8000", "ftp://host", "http://", "http://u:p@host", "http://host?x=1", "http://host#x", "http://host\n",
	} {
		if c, err := New(Options{URL: bad}); err == nil {
			t.Errorf("New(%q) = %v, want an error", bad, c.URL())
		}
	}
}

func TestNewTakesPaths(t *testing.T) {
	t.Parallel()
	c, err := New(Options{URL: "https://host.test/hive/"})
	if err != nil || c.URL() != "https://host.test/hive" {
		t.Errorf("URL = %v, %v; want it without the slash", c.URL(), err)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	var got http.Header
	c := fakeHost(t, Options{Token: "secret", UserAgent: "test/1"}, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		reply(w, 200, `{"id":"alice","role":"user"}`)
	})
	who, err := c.WhoAmI(t.Context())
	if err != nil || who != (Identity{"alice", "user", false}) {
		t.Fatalf("WhoAmI = %+v, %v", who, err)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer secret", "User-Agent": "test/1", "Accept": "application/json", "Content-Type": "",
	} {
		if got.Get(name) != want {
			t.Errorf("%s = %q, want %q", name, got.Get(name), want)
		}
	}
}

var refusals = []struct {
	name, kind, body string
	status           int
	detail           string
}{
	{"reason", "application/json", `{"detail":"invalid token"}`, 401, "invalid token"},
	{"structured reason", "application/json", `{"detail":[{"loc":1}]}`, 422, `[{"loc":1}]`},
	{"plain text", "text/plain", "Internal Server Error\n", 500, "Internal Server Error"},
	{"nothing", "text/plain", "", 501, "refused without a reason"},
	{"not text", "application/octet-stream", "\xff\xfe", 404, "refused without a reason"},
	{"redirect", "text/plain", "moved", 307, "moved"},
	{"long", "text/plain", strings.Repeat("x", maxDetail) + "y", 400, strings.Repeat("x", maxDetail) + "… (what follows is left out)"},
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tc := range refusals {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			c := fakeHost(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
				calls++
				w.Header().Set("Location", "/elsewhere")
				w.Header().Set("X-Request-Id", "r-1")
				w.Header().Set("Content-Type", tc.kind)
				w.WriteHeader(tc.status)
				io.WriteString(w, tc.body)
			})
			_, err := c.Root(t.Context())
			var refusal *Error
			if !errors.As(err, &refusal) {
				t.Fatalf("err = %v, want an *Error", err)
			}
			if want := (Error{tc.status, tc.detail, "r-1"}); *refusal != want {
				t.Errorf("err = %+v, want %+v", *refusal, want)
			}
			if !strings.Contains(err.Error(), tc.detail) || !strings.Contains(err.Error(), "r-1") {
				t.Errorf("text %q lacks the reason or the request", err)
			}
			if calls != 1 {
				t.Errorf("%d calls, want 1: no refusal of this kind is repeated", calls)
			}
		})
	}
}

func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, kind, body string
		want             error
	}{
		{"page", "text/html", "<html>", ErrNotMAIL},
		{"no type", "", "{}", ErrNotMAIL},
		{"broken", "application/json", `{"id":`, ErrNotMAIL},
		{"another shape", "application/json", `{"id":[]}`, ErrNotMAIL},
		{"large", "application/json", `{"id":"` + strings.Repeat("x", 2000) + `"}`, ErrTooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := fakeHost(t, Options{MaxResponse: 1000}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{tc.kind}
				io.WriteString(w, tc.body)
			})
			if _, err := c.WhoAmI(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("err = %v, want %v", err, tc.want)
			}
		})
	}
}

func TestAnswerOfTheLargestSize(t *testing.T) {
	t.Parallel()
	body := `{"id":"` + strings.Repeat("x", 991) + `"}`
	c := fakeHost(t, Options{MaxResponse: 1000}, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, body) })
	if _, err := c.WhoAmI(t.Context()); err != nil || len(body) != 1000 {
		t.Errorf("%d bytes: %v", len(body), err)
	}
}

func TestRootAndStatus(t *testing.T) {
	t.Parallel()
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			reply(w, 200, `{"name":"mail","protocol_version":"1.3","status":"running","uptime":1.5,"swarm":{"name":"hive","entrypoint":"chief","keywords":["k"]}}`)
		case "/status":
			reply(w, 200, `{"swarm":{"name":"hive","status":"ready"},"active_users":2,"user_mail_ready":true,"user_task_running":true}`)
		}
	})
	root, err := c.Root(t.Context())
	if err != nil || root.Swarm.Name != "hive" || root.Swarm.Entrypoint != "chief" || root.Protocol != "1.3" || root.Uptime != 1.5 {
		t.Errorf("Root = %+v, %v", root, err)
	}
	status, err := c.Status(t.Context())
	if err != nil || status.Swarm.Status != "ready" || status.ActiveUsers != 2 || !status.MailReady || !status.TaskRunning {
		t.Errorf("Status = %+v, %v", status, err)
	}
}

// eventually gives a test that waits for the outside a bound.
func eventually(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("the test takes too long"))
	t.Cleanup(cancel)
	return ctx
}

func decodeBody(t *testing.T, r *http.Request) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		t.Errorf("body: %v", err)
	}
	return m
}

func ExampleClient_PostMessage() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-MAIL-Task-Id", "t-1")
		w.Header().Set("X-MAIL-Finish-Subject", "::task_complete::")
		reply(w, 200, `{"response":"42","events":null}`)
	}))
	defer srv.Close()
	c, err := New(Options{URL: srv.URL, Token: "…"})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	answer, err := c.PostMessage(context.Background(), Post{Body: "What is 6 times 7?"})
	fmt.Println(answer.Body, answer.Task, err)
	// Output: 42 t-1 <nil>
}

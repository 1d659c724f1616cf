package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host"
	"skep/host/client"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/spec/mail"
)

const hive = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
public = true
[agents.boss]
source = "bundled:script"
enable_entrypoint = true
can_complete_tasks = true
[[auth.keys]]
id = "ada"
role = "admin"
key = "a-key-of-ada-for-the-test"
`

// real is a host that can be stopped and started at one address.
type real struct {
	t    *testing.T
	dir  string
	url  string
	stop func()
}

func newReal(t *testing.T) *real {
	t.Helper()
	guests.Bytes(t, "plugins/script") // builds it when it is stale
	r := &real{t: t, dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(r.dir, "swarm.toml"), []byte(hive), 0o600); err != nil {
		t.Fatal(err)
	}
	r.start("127.0.0.1:0")
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *real) start(listen string) {
	r.t.Helper()
	cfg, err := config.Load(filepath.Join(r.dir, "swarm.toml"), config.Options{BundleDir: filepath.Join(guests.Root(), "bin", "plugins")})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h, err := host.New(ctx, host.Options{Config: cfg, CacheDir: guests.CacheDir(r.t), Listen: listen, AdminListen: "off"})
	if err != nil {
		cancel()
		r.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	r.url = "http://" + h.Addr()
	stopped := false
	r.stop = func() {
		if cancel(); !stopped {
			stopped = true
			if err := <-done; err != nil {
				r.t.Error("Run:", err)
			}
		}
	}
}

func (r *real) restart() {
	r.t.Helper()
	r.stop()
	r.start(r.url[len("http://"):])
}

func (r *real) client() *client.Client {
	r.t.Helper()
	c, err := client.New(client.Options{URL: r.url, Token: "a-key-of-ada-for-the-test"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	return c
}

// within bounds a test that waits for a host.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the test takes too long"))
	t.Cleanup(cancel)
	return ctx
}

// reading is what a reader of a stream got.
type reading struct {
	cursors []int64
	err     error
}

// follow reads a task to its end and tells when the first event has come.
func follow(ctx context.Context, c *client.Client, task string, begun chan<- struct{}) (got reading) {
	for e, err := range c.Stream(ctx, task, 0) {
		if err != nil {
			got.err = err
			return got
		}
		if len(got.cursors) == 0 {
			begun <- struct{}{}
		}
		got.cursors = append(got.cursors, e.Cursor)
	}
	return got
}

// TestStreamOverRestart: a reader of a task has each event of its log once, in
// order, though its host has been stopped and started in between.
func TestStreamOverRestart(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	c, ctx := r.client(), within(t)
	if _, err := c.PostAsync(ctx, client.Post{Task: "long", Body: `[["timer.set",{"after":"1h","body":"late"}]]`}); err != nil {
		t.Fatal(err)
	}
	begun, read := make(chan struct{}, 1), make(chan reading, 1)
	go func() { read <- follow(ctx, c, "long", begun) }()
	select {
	case <-begun:
	case got := <-read:
		t.Fatal("the stream ended before its first event:", got.err)
	}
	r.restart()
	answer, err := c.PostMessage(ctx, client.Post{Task: "long", Body: "hello", Subject: "q"})
	if err != nil || answer.Body != "boss got [q] hello" {
		t.Fatalf("answer %+v, %v", answer, err)
	}
	got := <-read
	record, err := c.Record(ctx, "long")
	if err != nil || got.err != nil {
		t.Fatal(err, got.err)
	}
	var want []int64
	for n := range record.Events {
		want = append(want, int64(n)+1)
	}
	if diff := cmp.Diff(want, got.cursors); diff != "" || len(want) < 4 {
		t.Errorf("events (-log +read):\n%s", diff)
	}
}

// TestKeyOverRestart: a post that is sent again under its key, also to the next
// life of the host, is the same post.
func TestKeyOverRestart(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	c, ctx := r.client(), within(t)
	post := client.Post{Body: "hello", Subject: "q", Key: client.NewKey()}
	first, err := c.PostMessage(ctx, post)
	if err != nil {
		t.Fatal(err)
	}
	r.restart()
	if again, err := c.PostMessage(ctx, post); err != nil || again != first {
		t.Errorf("again %+v, %v; first %+v", again, err, first)
	}
	post.Body = "other"
	var refused *client.Error
	if _, err := c.PostMessage(ctx, post); !errors.As(err, &refused) || refused.Status != 409 || refused.RequestID == "" {
		t.Errorf("another body under the key: %v, want 409 and a request's id", err)
	}
	tasks, err := c.Records(ctx)
	if err != nil || len(tasks) != 1 || tasks[first.Task].State != "completed" || len(tasks[first.Task].Events) == 0 {
		t.Errorf("Records = %+v, %v; want one task", tasks, err)
	}
}

// TestEndpointsOfARealHost: what the client decodes is what a host writes.
func TestEndpointsOfARealHost(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	c, ctx := r.client(), within(t)
	if h, err := c.SetHealth(ctx, "degraded"); err != nil || h.Status != "degraded" || h.Swarm != "hive" || h.Since == "" {
		t.Errorf("SetHealth = %+v, %v", h, err)
	}
	if h, err := c.Health(ctx); err != nil || h.Status != "degraded" {
		t.Errorf("Health = %+v, %v", h, err)
	}
	ref, err := c.RegisterSwarm(ctx, client.Registration{
		Name: "depot", BaseURL: r.url, Token: "t", Lasting: true, Metadata: json.RawMessage(`{"a":1}`),
	})
	if err != nil || ref == "" {
		t.Errorf("RegisterSwarm = %q, %v; want where the token is looked for", ref, err)
	}
	swarms, err := c.Swarms(ctx)
	if err != nil || len(swarms) != 2 || swarms[0].Name != "hive" || swarms[1].Name != "depot" || !swarms[1].Active || string(swarms[1].Metadata) != `{"a":1}` {
		t.Errorf("Swarms = %+v, %v", swarms, err)
	}
	var kept *client.Error
	if err := c.RemoveSwarm(ctx, "depot"); !errors.As(err, &kept) || kept.Status != 409 {
		t.Errorf("RemoveSwarm of one whose token is the operator's: %v, want 409", err)
	}
	if _, err := c.RegisterSwarm(ctx, client.Registration{Name: "passing", BaseURL: r.url}); err != nil {
		t.Error(err)
	}
	if err := c.RemoveSwarm(ctx, "passing"); err != nil {
		t.Error(err)
	}
	if name, err := c.DumpSwarm(ctx); err != nil || name != "hive" {
		t.Errorf("DumpSwarm = %q, %v", name, err)
	}
	d, err := c.PostInterswarm(ctx, client.Outbound{Targets: []string{"boss@hive"}, Body: "hello", Subject: "q", Events: true})
	if err != nil || d.Response.Payload.Body != "boss got [q] hello" || d.Response.Type != mail.Response || len(d.Events) == 0 {
		t.Errorf("PostInterswarm = %+v, %v", d, err)
	}
	var refused *client.Error
	if _, err := c.LoadSwarm(ctx, "no JSON"); !errors.As(err, &refused) {
		t.Errorf("LoadSwarm: %v, want a refusal", err)
	}
	w := mail.Interswarm{
		MessageID: "m", SourceSwarm: "depot", TargetSwarm: "hive", Timestamp: d.Response.Timestamp, Type: mail.Response,
		Payload: d.Response.Payload, TaskOwner: "admin:ada@hive", TaskContributors: []string{"admin:ada@hive"},
	}
	if _, err := c.Forward(ctx, w); !errors.As(err, &refused) || refused.Status != 401 {
		t.Errorf("Forward as an admin: %v, want 401", err)
	}
}

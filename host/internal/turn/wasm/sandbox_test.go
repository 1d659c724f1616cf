package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skep/abi"
	"skep/host/internal/guests"
	"skep/host/internal/turn"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArg {
		os.Exit(CompileChild(context.Background(), os.Stdin, os.Stderr, os.Args[2:]))
	}
	if len(os.Args) > 1 && spoiled[os.Args[1]] != nil {
		spoiled[os.Args[1]]()
		os.Exit(CompileChild(context.Background(), os.Stdin, os.Stderr, os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == growArg {
		if err := grow(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// shared is an engine on the repository's compile cache, for the Go guests.
var shared struct {
	once   sync.Once
	engine *Engine
	err    error
}

// goGuest loads a guest of this repository.
func goGuest(tb testing.TB, name string) *Module {
	tb.Helper()
	dir := guests.CacheDir(tb)
	shared.once.Do(func() { shared.engine, shared.err = New(context.Background(), Options{CacheDir: dir}) })
	e, err := shared.engine, shared.err
	if err != nil {
		tb.Fatal(err)
	}
	m, err := e.Load(context.Background(), Source{Name: name, Wasm: guests.Bytes(tb, name)})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// engine makes an engine without a cache directory.
func engine(tb testing.TB) *Engine {
	tb.Helper()
	e, err := New(context.Background(), Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// load loads a hand-made guest into an engine of its own.
func load(tb testing.TB, wasm []byte) *Module {
	tb.Helper()
	m, err := engine(tb).Load(context.Background(), Source{Name: "test", Wasm: wasm})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// fakeOps answers ops at once with a func, and keeps what it was asked.
type fakeOps struct {
	mu     sync.Mutex
	asked  []abi.Op
	logs   []abi.LogRequest
	answer func(ctx context.Context, op abi.Op, req []byte) ([]byte, *abi.Error)
}

func (f *fakeOps) Call(ctx context.Context, op abi.Op, req []byte) ([]byte, *abi.Error) {
	return turn.OpsFunc(f.one).Call(ctx, op, req)
}

func (f *fakeOps) Submit(ctx context.Context, op abi.Op, req []byte) (turn.Answer, *abi.Error) {
	return turn.OpsFunc(f.one).Submit(ctx, op, req)
}

func (f *fakeOps) Wait(ctx context.Context, list []turn.Answer, timeout time.Duration) (int, *abi.Error) {
	return turn.OpsFunc(f.one).Wait(ctx, list, timeout)
}

func (f *fakeOps) one(ctx context.Context, op abi.Op, req []byte) ([]byte, *abi.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, op)
	if op == abi.OpLog {
		var line abi.LogRequest
		if err := json.Unmarshal(req, &line); err != nil {
			return nil, abi.Errorf(abi.CodeInvalid, op, "json", "%v", err)
		}
		f.logs = append(f.logs, line)
		return []byte("{}"), nil
	}
	if f.answer == nil {
		return []byte("{}"), nil
	}
	return f.answer(ctx, op, req)
}

// fakeClock moves when told, and counts its sleeps.
type fakeClock struct {
	now    time.Time
	sleeps []time.Duration
	real   bool   // wait, too
	asleep func() // called when a sleep begins
}

func newClock() *fakeClock {
	return &fakeClock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
}

func (c *fakeClock) Now() time.Time { return c.now }

func (c *fakeClock) Advance(to time.Time) { c.now = to }

func (c *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	c.sleeps = append(c.sleeps, d)
	if c.asleep != nil {
		c.asleep()
	}
	if c.real {
		begun := time.Now()
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			c.now = c.now.Add(min(d, time.Since(begun)))
			return context.Cause(ctx)
		}
	}
	c.now = c.now.Add(d)
	return nil
}

// patience is more than a turn of these tests takes on a busy machine under the race
// detector: what ends them is another limit.
const patience = 10 * time.Minute

// play runs one turn with fakes where the test gives nothing.
func play(tb testing.TB, m *Module, t turn.Turn) turn.Result {
	tb.Helper()
	if t.Clock == nil {
		t.Clock = newClock()
	}
	if t.Ops == nil {
		t.Ops = &fakeOps{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return m.Turn(ctx, t)
}

// wantExit compares an exit's kind and limit; an empty kind is a good end.
func wantExit(tb testing.TB, got *turn.Exit, kind turn.ExitKind, limit string) {
	tb.Helper()
	switch {
	case got == nil && kind == "":
	case got == nil:
		tb.Errorf("the turn ended well, want %s (%s)", kind, limit)
	case got.Kind != kind || got.Limit != limit:
		tb.Errorf("exit %s (%s): %v; want %s (%s)", got.Kind, got.Limit, got, kind, limit)
	}
}

// input makes a turn input whose message has a body.
func input(tb testing.TB, body string) []byte {
	tb.Helper()
	message, err := json.Marshal(map[string]any{
		"id": "8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11", "timestamp": "2026-11-20T12:00:00.000000+00:00", "msg_type": "request",
		"message": map[string]any{
			"task_id": "5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90", "request_id": "0f3a7a34-9d0e-4f0c-9a55-6a6a0a3b8f21",
			"sender":    map[string]any{"address_type": "user", "address": "test"},
			"recipient": map[string]any{"address_type": "agent", "address": "a"},
			"subject":   "New Message", "body": body,
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	in, err := json.Marshal(abi.TurnInput{V: 1, Turn: 1, Priority: 4, Message: message,
		Agent: abi.Agent{Address: "a", Swarm: "s", CanCompleteTasks: true}})
	if err != nil {
		tb.Fatal(err)
	}
	return in
}

func TestLoadSharesOneModulePerDigest(t *testing.T) {
	t.Parallel()
	e := engine(t)
	wasm := newBuilder().agent("", ok)
	var wg sync.WaitGroup
	got := make([]*Module, 8)
	for i := range got {
		wg.Go(func() {
			m, err := e.Load(t.Context(), Source{Name: "a", Wasm: wasm})
			if err != nil {
				t.Error(err)
			}
			got[i] = m
		})
	}
	wg.Wait()
	for _, m := range got {
		if m != got[0] {
			t.Fatal("the same bytes were made into two modules")
		}
	}
	if d := got[0].Descriptor(); d == nil || d.Name != "hostile" {
		t.Errorf("descriptor %+v", d)
	}
}

func TestCloseWaitsAndRefuses(t *testing.T) {
	t.Parallel()
	e, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := e.Load(t.Context(), Source{Wasm: newBuilder().agent("", ok)})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if r := m.Turn(t.Context(), turn.Turn{}); r.Exit == nil || r.Exit.Kind != turn.ExitHost {
		t.Errorf("a turn of a closed engine: %v", r.Exit)
	}
	if _, err := e.Load(t.Context(), Source{}); !errors.Is(err, errClosed) {
		t.Errorf("Load of a closed engine: %v", err)
	}
}

func TestCacheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/cache"
	e, err := New(t.Context(), Options{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("cache directory %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Options{CacheDir: dir}); err == nil {
		t.Error("a cache directory that others can write to was accepted")
	}
}

package crash_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"skep/host/client"
	"skep/host/internal/api/audit"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// failoverRounds is how often a test loses the primary: once, as often as `make failover` says.
func failoverRounds(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("SKEP_FAILOVERS"), "1"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// startOnPair starts a host whose store is on a primary and its standby.
func startOnPair(t *testing.T, p *pgtest.Pair, durability string) *hosttest.Process {
	t.Helper()
	v := hosttest.NewProcess(t, "127.0.0.1")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dsn"), []byte(p.DSN()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte(strings.Repeat("5e", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	v.Launch(hosttest.ScriptSwarm + fmt.Sprintf("[store]\ndriver = \"postgres\"\ndsn = \"file::%s/dsn\"\nkeyring = \"file::%s/key\"\ndurability = %q\n", dir, dir, durability))
	return v
}

// callers post tasks with keys until stop, and repeat a post whose answer does not come.
type callers struct {
	t        *testing.T
	c        *client.Client
	stop     atomic.Bool
	posted   atomic.Int64
	answered atomic.Int64
	repeated atomic.Int64
	wg       sync.WaitGroup
}

// run has one caller post.
func (l *callers) run() {
	for !l.stop.Load() {
		id := fmt.Sprintf("task-%d", l.posted.Add(1))
		if err := l.post(l.t.Context(), id); err != nil {
			l.t.Errorf("%s: %v", id, err)
			return
		}
		l.answered.Add(1)
	}
}

// post posts a task until its answer is there, each time with the same key.
func (l *callers) post(ctx context.Context, id string) error {
	post := client.Post{
		Task: id, Key: "key-" + id,
		Body: `[["send_request",{"target":"math","subject":"s","body":"` + id + `"}],["await_message",{}]]`,
	}
	for {
		patience, cancel := context.WithTimeout(ctx, time.Second)
		a, err := l.c.PostMessage(patience, post)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			l.repeated.Add(1)
			continue
		}
		if want := "boss got [Re: s] echo: " + id; err == nil && a.Body != want {
			err = fmt.Errorf("answer %q, want %q", a.Body, want)
		}
		return err
	}
}

// waitFor waits for further answers.
func (l *callers) waitFor(more int64) {
	l.t.Helper()
	want := l.answered.Load() + more
	for deadline := time.Now().Add(3 * time.Minute); l.answered.Load() < want && !l.t.Failed(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("%d answers, want %d", l.answered.Load(), want)
		}
	}
}

// TestFailover: the primary is killed under load and its synchronous standby promoted, again and
// again. Each task whose post was acknowledged ends once with its own answer, also for a caller
// that repeats its post, and no history has a message twice.
func TestFailover(t *testing.T) {
	t.Parallel()
	rounds := failoverRounds(t)
	p := pgtest.StartPair(t, true)
	l := &callers{t: t, c: startOnPair(t, p, "replicated").Client()}
	for range 16 {
		l.wg.Go(l.run)
	}
	for range rounds {
		l.waitFor(50)
		p.Primary.Kill(t)
		p.Promote(t)
		p.Follow(t)
	}
	l.waitFor(50)
	l.stop.Store(true)
	l.wg.Wait()
	t.Logf("%d tasks, %d posts repeated, the primary lost %d times", l.posted.Load(), l.repeated.Load(), rounds)
	for n := range l.posted.Load() {
		id := fmt.Sprintf("task-%d", n+1)
		if err := l.post(t.Context(), id); err != nil {
			t.Errorf("%s, posted once more: %v", id, err)
		}
		checkTask(t, l.c, id)
	}
}

// writtenGroups returns how many groups a server has of the host that writes.
func writtenGroups(t *testing.T, s *pgtest.Server) (n int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT seq FROM hosts WHERE NOT dead").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLaggingStandby: a host whose server was replaced by a standby that had not got all ends,
// and says how many groups are gone.
func TestLaggingStandby(t *testing.T) {
	t.Parallel()
	p := pgtest.StartPair(t, false)
	v := startOnPair(t, p, "local")
	l := &callers{t: t, c: v.Client()}
	for n := range 20 {
		if n == 10 {
			p.Standby.Kill(t)
		}
		if err := l.post(t.Context(), fmt.Sprint("task-", n)); err != nil {
			t.Fatal(err)
		}
	}
	lost := p.Primary
	lost.Kill(t)
	p.Standby.Start(t)
	p.Promote(t)
	has := writtenGroups(t, p.Primary) // once promoted: it has replayed all that it got
	// A host that writes nothing does not look. This post gets no answer.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	l.wg.Go(func() { _, _ = l.c.PostMessage(ctx, client.Post{Task: "last", Body: "[]"}) })
	code, log := v.End()
	cancel()
	l.wg.Wait()
	lost.Start(t)
	acknowledged := writtenGroups(t, lost)
	want := fmt.Sprintf("the server has lost acknowledged writes: it knows %d groups of this host and has acknowledged %d, so %d are gone", has, acknowledged, acknowledged-has)
	if acknowledged <= has || code <= 0 || !strings.Contains(log, want) {
		t.Errorf("the host ended with %d, want it to say %q", code, want)
	}
	recorded, err := os.ReadFile(filepath.Join(v.Data(), audit.Name))
	if err != nil || !strings.Contains(string(recorded), "store.loss") || !strings.Contains(string(recorded), want) {
		t.Errorf("the audit log has no store.loss with %q: %v", want, err)
	}
}

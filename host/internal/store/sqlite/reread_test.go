package sqlite

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
)

// socketName is the name of a server's socket in its directory.
const socketName = ".s.PGSQL.5432"

// wire passes connections on to a server, and breaks them.
type wire struct {
	// left is how many bytes of answers pass until a connection breaks, once. It is no bound while
	// armed is false.
	left  atomic.Int64
	armed atomic.Bool
	// holds: the connection does not break, and all are silent from then on.
	holds atomic.Bool
	// silent: answers do not arrive.
	silent atomic.Bool
	// pause: the connection does not break, and the rest comes after it.
	pause atomic.Int64
	wg    sync.WaitGroup
}

// wireTo begins to pass connections on to the server of a DSN, and returns a DSN that leads there.
func wireTo(t *testing.T, dsn string) (*wire, string) {
	t.Helper()
	_, after, _ := strings.Cut(dsn, "host=")
	escaped, _, _ := strings.Cut(after, "&")
	host := strings.ReplaceAll(escaped, "%2F", "/")
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, socketName))
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{}
	t.Cleanup(w.wg.Wait)
	t.Cleanup(func() { _ = l.Close() })
	w.wg.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("unix", filepath.Join(host, socketName))
			if err != nil {
				_ = from.Close()
				continue
			}
			w.wg.Go(func() { _, _ = io.Copy(to, from); _, _ = from.Close(), to.Close() })
			w.wg.Go(func() { w.answer(from, to); _, _ = from.Close(), to.Close() })
		}
	})
	return w, strings.Replace(dsn, escaped, strings.ReplaceAll(dir, "/", "%2F"), 1)
}

// answer passes answers of the server on.
func (w *wire) answer(to, server net.Conn) {
	buffer := make([]byte, 1<<16)
	for {
		b := buffer
		n, err := server.Read(b)
		if err != nil {
			return
		}
		if w.silent.Load() {
			continue
		}
		if left := w.left.Add(-int64(n)); w.armed.Load() && left < 0 && w.armed.CompareAndSwap(true, false) {
			_, _ = to.Write(b[:int64(n)+left])
			if w.holds.Load() {
				w.silent.Store(true)
				continue
			}
			if w.pause.Load() == 0 {
				return
			}
			time.Sleep(time.Duration(w.pause.Load()))
			b, n = b[int64(n)+left:], int(-left)
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// readsOfTask are reads of each form: of a row, of rows, and of several statements in one
// transaction.
func readsOfTask(s *Store, key swarm.TaskKey) map[string]func(context.Context) (int, error) {
	return map[string]func(context.Context) (int, error){
		"submission": func(ctx context.Context) (int, error) {
			p, err := s.Submission(ctx, key.InstanceKey, "rest", key.Task)
			return len(p.Key), err
		},
		"events": func(ctx context.Context) (int, error) {
			events, err := s.Events(ctx, key, 0, 100)
			return len(events), err
		},
		"load": func(ctx context.Context) (int, error) {
			snap, err := s.Load(ctx, key)
			return int(snap.Task.Cursor), err
		},
		"footprint": func(ctx context.Context) (int, error) {
			f, err := s.Footprint(ctx, key.Tenant)
			return int(f.Tasks), err
		},
		"list": func(ctx context.Context) (int, error) {
			tasks, _, err := s.ListTasks(ctx, swarm.TaskFilter{InstanceKey: swarm.InstanceKey{Tenant: key.Tenant, Swarm: key.Swarm}}, "", 10)
			return len(tasks), err
		},
		"walk": func(ctx context.Context) (n int, err error) {
			err = s.walk(ctx, key.Tenant, func(items []item) error { n += len(items); return nil })
			return n, err
		},
	}
}

// TestReadIsCut: a read whose connection breaks anywhere in its answer is answered all the same,
// and as a whole.
func TestReadIsCut(t *testing.T) {
	t.Parallel()
	w, dsn := wireTo(t, pgtest.Schema(t))
	s := openTestServer(t, dsn)
	s.readers.db.SetMaxOpenConns(1)
	copiedSteps(t, s, 0, 20)
	const places = 12
	for name, read := range readsOfTask(s, swarm.TaskKey{InstanceKey: testInstance, Task: "t0"}) {
		want, err := read(t.Context())
		if err != nil || want == 0 {
			t.Fatalf("%s: %d, %v", name, want, err)
		}
		w.left.Store(0)
		if _, err := read(t.Context()); err != nil { // its statements are prepared
			t.Fatalf("%s: %v", name, err)
		}
		length, cuts := -w.left.Load(), 0
		for i := range int64(places) {
			n := i * length / places
			w.left.Store(n)
			w.armed.Store(true)
			got, err := read(t.Context())
			if err != nil || got != want {
				t.Fatalf("%s, cut after %d bytes: %d, %v; want %d", name, n, got, err, want)
			}
			if !w.armed.Swap(false) {
				cuts++
			}
		}
		if cuts < places/2 {
			t.Errorf("%s was cut %d times", name, cuts)
		}
	}
}

// TestReadGivesUp: a read of a server that does not answer, or is not there, is refused for now once
// its patience is over; one whose caller leaves ends with that.
func TestReadGivesUp(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	w, dsn := wireTo(t, server.DSN())
	s := openTestServer(t, dsn)
	copiedSteps(t, s, 0, 1)
	key := swarm.TaskKey{InstanceKey: testInstance, Task: "t0"}
	s.readers.patience = 200 * time.Millisecond
	wantGivenUp := func(when string) {
		t.Helper()
		for name, read := range readsOfTask(s, key) {
			if _, err := read(t.Context()); !errors.Is(err, swarm.ErrUnavailable) {
				t.Errorf("%s %s: %v", name, when, err)
			}
		}
	}
	w.silent.Store(true)
	wantGivenUp("of a server that does not answer")
	w.silent.Store(false)
	server.Kill(t)
	wantGivenUp("without a server")
	s.readers.patience = time.Minute
	ctx, leave := context.WithCancelCause(t.Context())
	errLeft := errors.New("the caller left")
	time.AfterFunc(20*time.Millisecond, func() { leave(errLeft) })
	if _, err := s.Load(ctx, key); !errors.Is(err, errLeft) {
		t.Error("a read whose caller left:", err)
	}
	server.Start(t)
	if _, err := s.Load(t.Context(), key); err != nil {
		t.Error("a server that is back:", err)
	}
}

package sqlite

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"skep/abi"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
)

// countSends returns a DSN that leads to the server of another by a socket of its own, and how
// often something was sent on it.
func countSends(t *testing.T, dsn string) (counted string, sends *atomic.Int64) {
	t.Helper()
	to, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query, dir := to.Query(), t.TempDir()
	const socket = ".s.PGSQL.5432"
	target := filepath.Join(query.Get("host"), socket)
	l, err := net.Listen("unix", filepath.Join(dir, socket))
	if err != nil {
		t.Fatal(err)
	}
	sends = &atomic.Int64{}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", target)
			if err != nil {
				t.Error(err)
				client.Close()
				return
			}
			all.Go(func() { io.Copy(client, server); client.Close() })
			all.Go(func() { io.Copy(countingWriter{server, sends}, client); server.Close() })
		}
	})
	query.Set("host", dir)
	to.RawQuery = query.Encode()
	return to.String(), sends
}

type countingWriter struct {
	io.Writer
	writes *atomic.Int64
}

func (c countingWriter) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Writer.Write(b)
}

// TestServerRoundTrips: a post costs two round trips, the end of a turn one, however many
// statements they are.
func TestServerRoundTrips(t *testing.T) {
	t.Parallel()
	dsn, sends := countSends(t, pgtest.Schema(t))
	s := openTestServer(t, dsn)
	accept := func(task string) error {
		_, err := s.Accept(t.Context(), testStep(task, 1), testPost(task, 1))
		return err
	}
	journal := func(task string) error {
		w := swarm.JournalWrite{Header: &swarm.TurnHeader{Agent: "a", Input: []byte("{}")}, Entries: []swarm.Entry{{N: 1}}}
		_, err := s.Journal(t.Context(), testStep(task, 1).Task.Key, 1, w)
		return err
	}
	commit := func(task string) error {
		m := testStep(task, 2)
		m.History = []swarm.AgentEntry{{Agent: "a", Entry: abi.HistoryEntry{Seq: 1}}}
		m.Record = &swarm.Record{N: 1, Entries: []swarm.Entry{{N: 2}}, End: &swarm.TurnEnd{At: testTime}}
		return s.Commit(t.Context(), m)
	}
	steps := []struct {
		name string
		do   func(task string) error
		want int64
	}{{"a post", accept, 2}, {"a journal write", journal, 1}, {"the end of a turn", commit, 1}}
	for _, task := range []string{"first", "second"} { // the first prepares, and takes numbers
		for _, st := range steps {
			before := sends.Load()
			if err := st.do(task); err != nil {
				t.Fatalf("%s: %v", st.name, err)
			}
			if n := sends.Load() - before; task != "first" && n != st.want {
				t.Errorf("%s took %d round trips, want %d", st.name, n, st.want)
			}
		}
	}
}

// TestServerGroupOfTaken: posts with keys that are taken leave the others of their group as they
// are, and each has its own outcome.
func TestServerGroupOfTaken(t *testing.T) {
	t.Parallel()
	s := openTestServer(t, pgtest.Schema(t))
	const tasks, tries = 40, 3
	var accepted, earlier atomic.Int64
	var all sync.WaitGroup
	for n := range tasks * tries {
		all.Go(func() {
			task := fmt.Sprint("t", n%tasks)
			_, err := s.Accept(t.Context(), testStep(task, 1), testPost(task, 1))
			switch {
			case err == nil:
				accepted.Add(1)
			case errors.Is(err, swarm.ErrDuplicate):
				earlier.Add(1)
			default:
				t.Errorf("%s: %v", task, err)
			}
		})
	}
	all.Wait()
	if accepted.Load() != tasks || earlier.Load() != tasks*(tries-1) {
		t.Errorf("%d were accepted and %d found, want %d and %d", accepted.Load(), earlier.Load(), tasks, tasks*(tries-1))
	}
	f, err := s.Footprint(t.Context(), testInstance.Tenant)
	if err != nil || f.Tasks != tasks {
		t.Errorf("Footprint() = %+v, %v, want %d tasks", f, err, tasks)
	}
}

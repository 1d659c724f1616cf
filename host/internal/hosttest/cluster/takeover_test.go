package cluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/abi"
	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
	"skep/spec/mail"
)

// hostsOf starts hosts that share a schema.
func hostsOf(t *testing.T, n int) (hosts []*hosttest.Process) {
	t.Helper()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	dsn := pgtest.Schema(t)
	for range n {
		p := hosttest.NewProcess(t, "127.0.0.1")
		if err := os.WriteFile(filepath.Join(p.Dir, "store.key"), []byte(strings.Repeat("5e", 32)), 0o600); err != nil {
			t.Fatal(err)
		}
		p.Launch(hosttest.ScriptSwarm + fmt.Sprintf(`[store]
driver = "postgres"
dsn = %q
keyring = "file::store.key"
[cluster]
advertise = "http://%s"
beat = "250ms"
ttl = "4s"
`, dsn, p.Addr))
		hosts = append(hosts, p)
	}
	return hosts
}

// slowTask asks another agent, and takes a while.
func slowTask(id string) client.Post {
	return client.Post{
		Task: id, Key: "key-" + id,
		Body: `[["sleep",{"ms":300}],["send_request",{"target":"math","subject":"s","body":"` + id + `"}],["await_message",{}]]`,
	}
}

// load posts tasks through hosts in turn and waits for all answers. done counts them.
func load(t *testing.T, clients []*client.Client, name string, tasks int, done *atomic.Int64) {
	t.Helper()
	var all sync.WaitGroup
	const workers = 8
	for w := range workers {
		all.Go(func() {
			for i := w; i < tasks; i += workers {
				id := fmt.Sprint(name, i)
				want := "boss got [Re: s] echo: " + id
				if err := hosttest.CheckAnswer(t.Context(), clients[i%len(clients)], slowTask(id), i%3 == 0, want); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	for i := range tasks {
		checkTask(t, clients[(i+1)%len(clients)], fmt.Sprint(name, i))
	}
}

// checkTask checks that a task has ended once and that no message of it is there twice.
func checkTask(t *testing.T, c *client.Client, id string) {
	t.Helper()
	if err := hosttest.Follow(t.Context(), c, id); err != nil {
		t.Errorf("%s: events: %v", id, err)
	}
	if task, err := c.Task(t.Context(), id); err != nil || task.State != "completed" {
		t.Errorf("%s: state %q, %v", id, task.State, err)
	}
	// The end of the task is told to both.
	for agent, want := range map[string]int{"boss": 3, "math": 2} {
		h, err := c.History(t.Context(), id, agent, 0, 100)
		if err != nil {
			t.Errorf("%s: history: %v", id, err)
		}
		if n := countMessages(t, h.Entries); n != want {
			t.Errorf("%s: %s got %d messages, want %d", id, agent, n, want)
		}
	}
}

// countMessages counts the messages of a history, and checks that none is there twice.
func countMessages(t *testing.T, entries []json.RawMessage) int {
	t.Helper()
	seen := map[string]bool{}
	for i, raw := range entries {
		var e abi.HistoryEntry
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		if e.Seq != int64(i+1) {
			t.Errorf("entry %d has seq %d", i+1, e.Seq)
		}
		if e.Kind != abi.KindIn {
			continue
		}
		m, err := mail.ParseMessage(e.Message)
		if err != nil || seen[m.ID] {
			t.Errorf("message %s stands twice, or cannot be read: %v", m.ID, err)
		}
		seen[m.ID] = true
	}
	return len(seen)
}

func clientsOf(hosts []*hosttest.Process) (clients []*client.Client) {
	for _, p := range hosts {
		clients = append(clients, p.Client())
	}
	return clients
}

// TestForwarded: a host answers for tasks of the others, whichever host their posts reach.
func TestForwarded(t *testing.T) {
	t.Parallel()
	var done atomic.Int64
	load(t, clientsOf(hostsOf(t, 2)), "t", 24, &done)
}

// TestKilled: the tasks of a host that is killed under load go on with the others. Nothing is lost
// or doubled, and callers of the others see no error.
func TestKilled(t *testing.T) {
	t.Parallel()
	hosts := hostsOf(t, 3)
	clients := clientsOf(hosts)
	var done atomic.Int64
	var all sync.WaitGroup
	all.Go(func() { load(t, clients[1:], "k", 48, &done) })
	waitFor(t, func() bool { return done.Load() >= 12 })
	hosts[0].Kill()
	all.Wait()
	hosts[0].Start()
	load(t, clientsOf(hosts), "again", 12, &done)
}

// waitFor waits until something is so.
func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	for !so() {
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

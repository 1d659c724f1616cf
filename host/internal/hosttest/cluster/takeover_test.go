package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/abi"
	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
	"skep/spec/mail"
)

// hostsOf starts hosts that share a schema.
func hostsOf(t *testing.T, n int) []*hosttest.Process {
	t.Helper()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	return hostsAt(t, n, pgtest.Schema(t))
}

// adminKey is the key of an admin of the hosts, operatorKey of an operator.
const (
	adminKey    = "a-key-for-the-admin-of-hosts"
	operatorKey = "a-key-for-the-operator-of-hosts"
)

// hostsAt starts hosts that share the schema at a DSN.
func hostsAt(t *testing.T, n int, dsn string) []*hosttest.Process {
	t.Helper()
	return hostsRunning(t, n, dsn, hosttest.ScriptSwarm)
}

// hostsRunning starts hosts of a swarm that share the schema at a DSN.
func hostsRunning(t *testing.T, n int, dsn, swarm string) (hosts []*hosttest.Process) {
	t.Helper()
	for range n {
		p := hosttest.NewProcess(t, "127.0.0.1")
		launchShared(t, p, dsn, p.Addr, swarm)
		hosts = append(hosts, p)
	}
	return hosts
}

// launchShared starts a host that shares the schema at a DSN, and that the others reach at an address.
func launchShared(t *testing.T, p *hosttest.Process, dsn, advertise, swarm string) {
	t.Helper()
	writeStoreKey(t, p)
	p.Launch(sharedFile(dsn, advertise, swarm))
}

// writeStoreKey writes the file of the key that sharedFile names.
func writeStoreKey(t *testing.T, p *hosttest.Process) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.Dir, "store.key"), []byte(strings.Repeat("5e", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// hostTTL is the ttl of hosts in [sharedFile].
const hostTTL = 4 * time.Second

// sharedFile is the file of a host of a swarm that shares the schema at a DSN, and that the others reach at an address.
func sharedFile(dsn, advertise, swarm string) string {
	return swarm + fmt.Sprintf(`[[auth.keys]]
id = "ada"
role = "admin"
key = %q
[[auth.keys]]
id = "root"
role = "operator"
key = %q
[store]
driver = "postgres"
dsn = %q
keyring = "file::store.key"
[cluster]
advertise = "http://%s"
beat = "250ms"
ttl = "%s"
`, adminKey, operatorKey, dsn, advertise, hostTTL)
}

// slowTask asks another agent, and takes a while.
func slowTask(id string) client.Post {
	return client.Post{
		Task: id, Key: "key-" + id,
		Body: `[["sleep",{"ms":300}],["send_request",{"target":"math","subject":"s","body":"` + id + `"}],["await_message",{}]]`,
	}
}

// loadTime bounds a load, also on a machine that has much else to do.
const loadTime = 4 * time.Minute

// startLoad starts a load and returns when some of its posts have ended; loaded waits for the rest.
func startLoad(t *testing.T, clients []*client.Client, name string, tasks, some int64) (loaded func()) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), loadTime)
	ended := make(chan struct{}, tasks)
	var all sync.WaitGroup
	all.Go(func() { load(ctx, t, clients, name, int(tasks), ended) })
	t.Cleanup(func() {
		stop()
		all.Wait()
	})
	for range some {
		<-ended // or the load's time is over
	}
	if t.Failed() {
		t.FailNow()
	}
	return all.Wait
}

// load posts tasks through hosts in turn and waits for all answers, and tells of each.
func load(ctx context.Context, t *testing.T, clients []*client.Client, name string, tasks int, ended chan<- struct{}) {
	t.Helper()
	var all sync.WaitGroup
	const workers = 8
	for w := range workers {
		all.Go(func() {
			for i := w; i < tasks; i += workers {
				id := fmt.Sprint(name, i)
				want := "boss got [Re: s] echo: " + id
				if err := hosttest.CheckAnswer(ctx, clients[i%len(clients)], slowTask(id), i%3 == 0, want); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				ended <- struct{}{}
			}
		})
	}
	all.Wait()
	for i := range tasks {
		checkTask(t, clients[(i+1)%len(clients)], fmt.Sprint(name, i))
	}
}

// checkTime bounds the look at a task that has ended.
const checkTime = time.Minute

// checkTask checks that a task has ended once and that no message of it is there twice.
func checkTask(t *testing.T, c *client.Client, id string) {
	t.Helper()
	if t.Failed() {
		return // a task that has not ended would be waited for
	}
	// The end of the task is told to both.
	checkTaskMail(t, c, id, map[string]int{"boss": 3, "math": 2})
}

// checkTaskMail checks that a task has ended once, and how many messages each agent has got.
func checkTaskMail(t *testing.T, c *client.Client, id string, got map[string]int) {
	t.Helper()
	for _, fault := range taskFaults(t.Context(), c, id, got) {
		t.Errorf("%s: %s", id, fault)
	}
}

// taskFaults are what is wrong with a task that has ended once, and whose agents have got so many messages.
func taskFaults(ctx context.Context, c *client.Client, id string, got map[string]int) (faults []string) {
	ctx, stop := context.WithTimeout(ctx, checkTime)
	defer stop()
	if err := hosttest.Follow(ctx, c, id); err != nil {
		faults = append(faults, fmt.Sprint("events: ", err))
	}
	if task, err := c.Task(ctx, id); err != nil || task.State != "completed" {
		faults = append(faults, fmt.Sprintf("state %q, %v", task.State, err))
	}
	for agent, want := range got {
		h, err := c.History(ctx, id, agent, 0, 100)
		if err == nil {
			err = checkMessages(h.Entries, want)
		}
		if err != nil {
			faults = append(faults, fmt.Sprintf("history of %s: %v", agent, err))
		}
	}
	return faults
}

// checkMessages checks how many messages a history has, and that none is there twice.
func checkMessages(entries []json.RawMessage, want int) error {
	seen := map[string]bool{}
	for i, raw := range entries {
		var e abi.HistoryEntry
		if err := json.Unmarshal(raw, &e); err != nil {
			return err
		}
		if e.Seq != int64(i+1) {
			return fmt.Errorf("entry %d has seq %d", i+1, e.Seq)
		}
		if e.Kind != abi.KindIn {
			continue
		}
		m, err := mail.ParseMessage(e.Message)
		if err != nil || seen[m.ID] {
			return fmt.Errorf("message %s stands twice, or cannot be read: %v", m.ID, err)
		}
		seen[m.ID] = true
	}
	if len(seen) != want {
		return fmt.Errorf("%d messages, want %d", len(seen), want)
	}
	return nil
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
	startLoad(t, clientsOf(hostsOf(t, 2)), "t", 24, 0)()
}

// TestKilled: the tasks of a host that is killed under load go on with the others. Nothing is lost
// or doubled, and callers of the others see no error.
func TestKilled(t *testing.T) {
	t.Parallel()
	hosts := hostsOf(t, 3)
	clients := clientsOf(hosts)
	loaded := startLoad(t, clients[1:], "k", 48, 12)
	hosts[0].Kill()
	loaded()
	hosts[0].Start()
	startLoad(t, clientsOf(hosts), "again", 12, 0)()
}

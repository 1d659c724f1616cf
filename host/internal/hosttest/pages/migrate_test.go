package pages_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

const (
	// pausedEach is how many tasks there are to one that waits for a person.
	pausedEach = 100
	// replayed is about how many tasks are run again in each place.
	replayed = 20
	// posting is how many callers post at once.
	posting = 16
)

// movedTasks is how many tasks a test moves: make migrate-large moves 100,000.
func movedTasks(t *testing.T) int {
	t.Helper()
	n := 2 * pausedEach
	if text := os.Getenv("SKEP_MIGRATE_TASKS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// each calls do for all numbers from first below end in steps, of some at once.
func each(first, end, step int, do func(n int)) {
	numbers := make(chan int)
	var all sync.WaitGroup
	for range posting {
		all.Go(func() {
			for n := range numbers {
				do(n)
			}
		})
	}
	for n := first; n < end; n += step {
		numbers <- n
	}
	close(numbers)
	all.Wait()
}

// post posts a task, which waits for a person if it is one of pausedEach.
func (m *movedStore) post(c *client.Client, n int) {
	script, want := fmt.Sprintf(`[["task_complete",{"finish_message":"task %d"}]]`, n), fmt.Sprint("task ", n)
	if n%pausedEach == 0 {
		script, want = `[["confirm",{"item":"tea"}],["task_complete",{"finish_message":"{{0}}"}]]`, "confirm"
	}
	a, err := c.PostMessage(m.t.Context(), client.Post{Task: fmt.Sprint("t", n), Subject: "s", Body: script})
	if err != nil || !strings.Contains(a.Body, want) {
		m.t.Errorf("task %d: answer %+v, %v", n, a, err)
	}
}

// confirm gives the result that a task waits for, which is its answer then.
func (m *movedStore) confirm(c *client.Client, n int) {
	yes := fmt.Sprint("yes, ", n)
	a, err := c.PostMessage(m.t.Context(), client.Post{Task: fmt.Sprint("t", n), Result: &yes})
	if err != nil || a.Body != yes {
		m.t.Errorf("task %d: answer %+v, %v", n, a, err)
	}
}

// export returns the digest of an export of the tenant, and the number of its lines.
func (m *movedStore) export(data string) string {
	m.t.Helper()
	return m.run("skep tenant export default --data " + data + " >all && sha256sum <all && wc -l <all && rm all")
}

// sample runs turns of some tasks again, suspended ones among them, and returns what each did.
func (m *movedStore) sample(data string, tasks int) string {
	m.t.Helper()
	var all strings.Builder
	for n := 0; n < tasks; n += max(1, tasks/replayed/pausedEach) * pausedEach / 2 {
		out := m.run(fmt.Sprintf("skep replay t%d -o json --data %s", n, data))
		if !strings.Contains(out, `"equal": true`) || strings.Contains(out, `"equal": false`) {
			m.t.Errorf("replay of task %d in %s:\n%s", n, data, out)
		}
		all.WriteString(out)
	}
	return all.String()
}

// move moves the store, and returns how long that took.
func (m *movedStore) move(from, to string) time.Duration {
	m.t.Helper()
	began := time.Now()
	m.run("skep migrate --from " + from + " --to " + to)
	return time.Since(began)
}

// The lines of [store] of a store in a directory and on a server.
const (
	inDirectory = "keyring = \"env::SKEP_KEYRING\"\n"
	onServer    = inDirectory + "driver = \"postgres\"\ndsn = \"env::SKEP_DSN\"\ndurability = \"local\"\n"
)

func newMovedStore(t *testing.T) *movedStore {
	t.Helper()
	m := &movedStore{t: t, p: install(t), dir: t.TempDir(), vars: map[string]string{
		"SKEP_DSN": pgtest.Schema(t), "SKEP_KEYRING": strings.Repeat("5e", 32),
	}}
	if err := os.WriteFile(filepath.Join(m.dir, "script.wasm"), guests.Bytes(t, "plugins/script"), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMigrateKilled: of a move that is killed no host opens the source, until the move is given up, after
// which it can begin anew, or is completed, where it was killed too late to be given up.
func TestMigrateKilled(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "it moves a store itself")
	m := newMovedStore(t)
	m.write(inDirectory)
	h := m.start(".skep")
	c := h.Client(t)
	each(1, pausedEach, 1, func(n int) { m.post(c, n) })
	m.stop(h)
	exported := m.export(".skep")

	const move = "skep migrate --from .skep --to env::SKEP_DSN"
	m.kill(move)
	if out := m.run("skep serve 2>&1; test $? != 0"); !strings.Contains(out, "run the same command again, which completes it, or with --cancel") {
		t.Errorf("a host on what may be moved:\n%s", out)
	}
	if out := m.run(move + " --cancel 2>&1 || true"); strings.Contains(out, "is given up") {
		if got := m.export(".skep"); got != exported {
			t.Errorf("an export has the digest and lines\n%s, before\n%s", got, exported)
		}
		h = m.start(".skep")
		m.post(h.Client(t), pausedEach+1)
		m.stop(h)
		exported = m.export(".skep")
	} else if !strings.Contains(out, "the copy is whole") {
		t.Errorf("$ %s --cancel\n%s", move, out)
	}
	m.run(move)
	m.write(onServer)
	if got := m.export(".skep"); got != exported {
		t.Errorf("an export on the server has the digest and lines\n%s, before\n%s", got, exported)
	}
}

// TestMigrateManyTasks: of many tasks that are moved to a server and back, exports are the same,
// turns repeat as before, and those that wait for a person go on in either place.
func TestMigrateManyTasks(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "it moves a store itself")
	m, tasks := newMovedStore(t), movedTasks(t)
	m.write(inDirectory)
	h := m.start(".skep")
	c := h.Client(t)
	each(0, tasks, 1, func(n int) { m.post(c, n) })
	m.stop(h)
	exported, repeated := m.export(".skep"), m.sample(".skep", tasks)

	there := m.move(".skep", "env::SKEP_DSN")
	m.write(onServer)
	m.wantSame("on the server", ".skep", tasks, exported, repeated)
	h = m.start(".skep")
	c = h.Client(t)
	each(0, tasks, 2*pausedEach, func(n int) { m.confirm(c, n) })
	m.stop(h)
	exported, repeated = m.export(".skep"), m.sample(".skep", tasks)

	back := m.move("env::SKEP_DSN", "back")
	m.write(inDirectory)
	m.run("cp -r .skep/modules back/")
	m.wantSame("in the directory", "back", tasks, exported, repeated)
	h = m.start("back")
	c = h.Client(t)
	each(pausedEach, tasks, 2*pausedEach, func(n int) { m.confirm(c, n) })
	m.stop(h)
	m.sample("back", tasks)
	t.Logf("%d tasks were moved to the server in %v, and back in %v; %s", tasks, there, back, exported)
}

// wantSame compares what a place has with what another had.
func (m *movedStore) wantSame(where, data string, tasks int, exported, repeated string) {
	m.t.Helper()
	if got := m.export(data); got != exported {
		m.t.Errorf("an export %s has the digest and lines\n%s, before\n%s", where, got, exported)
	}
	if got := m.sample(data, tasks); got != repeated {
		m.t.Errorf("replay %s prints\n%s, before\n%s", where, got, repeated)
	}
}

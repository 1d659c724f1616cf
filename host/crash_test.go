package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skep/abi"
	"skep/host"
	"skep/host/client"
	"skep/host/internal/config"
	"skep/host/internal/guests"
	"skep/host/internal/subprocess"
	"skep/spec/mail"
)

// childEnv makes the test binary a host: its value is the directory, the
// address and the compile cache.
const childEnv = "SKEP_TEST_HOST"

// lifeEnv names the life of such a host: no two starts have the same.
const lifeEnv = "SKEP_TEST_LIFE"

func TestMain(m *testing.M) {
	if v := os.Getenv(childEnv); v != "" {
		parts := strings.Split(v, "|")
		if err := runChild(parts[0], parts[1], parts[2]); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == subprocess.Command {
		os.Exit(subprocess.Exec(os.Args[2:], os.Stderr))
	}
	if dir := os.Getenv(notesEnv); dir != "" {
		if err := serveNotes(dir); err != nil {
			fmt.Fprintln(os.Stderr, "notes:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func runChild(dir, addr, cache string) error {
	cfg, err := config.Load(filepath.Join(dir, "swarm.toml"), config.Options{Env: os.LookupEnv})
	if err != nil {
		return err
	}
	lg := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	h, err := host.New(context.Background(), host.Options{
		Config: cfg, Listen: addr, AdminListen: "off", CacheDir: cache, Logger: lg, Subprocess: []string{"/proc/self/exe", subprocess.Command},
	})
	if err != nil {
		return err
	}
	return h.Run(context.Background())
}

const crashSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
comm_targets = ["math"]
enable_entrypoint = true
can_complete_tasks = true
[agents.math]
source = "file:script.wasm"
comm_targets = ["boss"]
[[auth.keys]]
id = "crash"
role = "user"
key = "a-key-for-the-crash-test"
`

// victim is a host process that is killed and started again on its data.
type victim struct {
	t    *testing.T
	dir  string
	addr string
	env  string
	// command is the program with its arguments, this one by default; log is where
	// it writes to.
	command []string
	log     io.Writer
	mu      sync.Mutex
	life    int
	cmd     *exec.Cmd
}

// newVictim starts a host of a swarm whose modules are script.wasm.
func newVictim(t *testing.T, swarm string) *victim {
	t.Helper()
	v := &victim{t: t, dir: t.TempDir(), addr: freeAddress(t, "127.0.0.1"), log: os.Stderr}
	v.settle(swarm)
	return v
}

// settle writes the host's files and starts it.
func (v *victim) settle(swarm string) {
	v.t.Helper()
	for name, data := range map[string][]byte{"swarm.toml": []byte(swarm), "script.wasm": guests.Bytes(v.t, "plugins/script")} {
		if err := os.WriteFile(filepath.Join(v.dir, name), data, 0o600); err != nil {
			v.t.Fatal(err)
		}
	}
	v.env = childEnv + "=" + v.dir + "|" + v.addr + "|" + guests.CacheDir(v.t)
	v.start()
	v.t.Cleanup(v.kill)
}

// freeAddress is one at which nobody listens.
func freeAddress(t *testing.T, ip string) string {
	t.Helper()
	l, err := net.Listen("tcp", ip+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (v *victim) start() {
	v.mu.Lock()
	defer v.mu.Unlock()
	command := v.command
	if command == nil {
		command = []string{os.Args[0], "-test.run=^$"}
	}
	v.cmd = exec.Command(command[0], command[1:]...)
	v.life++
	v.cmd.Env = append(os.Environ(), v.env, lifeEnv+"="+lifeName(v.life))
	v.cmd.Stderr = v.log
	if err := v.cmd.Start(); err != nil {
		v.t.Error(err)
	}
}

// lifeName is what the requests of a host's n-th life are known by.
func lifeName(n int) string { return fmt.Sprintf("life-of-the-host-%03d", n) }

func (v *victim) kill() {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.cmd.Process.Signal(syscall.SIGKILL)
	_ = v.cmd.Wait()
}

// client returns a client that has reached the host, and therefore waits for
// it from then on.
func (v *victim) client() *client.Client { return v.clientOf("a-key-for-the-crash-test") }

// clientOf is client with somebody's key.
func (v *victim) clientOf(key string) *client.Client {
	v.t.Helper()
	c, err := client.New(client.Options{URL: "http://" + v.addr, Token: key, Patience: 2 * time.Minute})
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(c.Close)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err = c.Root(v.t.Context()); err == nil {
			return c
		}
		if time.Now().After(deadline) {
			v.t.Fatal("the host does not come up: ", err)
		}
	}
}

// TestKill: tasks from 16 clients while the host is killed at random and
// started again. Every accepted task ends exactly once, every client gets its
// own answer, no history holds a message twice, and a reader of events that
// resumes misses and repeats none.
func TestKill(t *testing.T) {
	tasks, kills := 160, 4
	if os.Getenv("SKEP_SOAK") != "" {
		tasks, kills = 1000, 10
	}
	if testing.Short() {
		tasks, kills = 48, 2
	}
	v := newVictim(t, crashSwarm)
	const clients = 16
	cl := v.client()
	ids := make(chan string, tasks)
	var wg sync.WaitGroup
	var answered atomic.Int64
	for c := range clients {
		wg.Go(func() {
			for i := c; i < tasks; i += clients {
				id := fmt.Sprintf("task-%d", i)
				if err := crashTask(t.Context(), cl, id, i%2 == 0); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				answered.Add(1)
				ids <- id
			}
		})
	}
	killed := killAtRandom(v, &answered, int64(tasks), kills)
	wg.Wait()
	close(ids)
	t.Logf("%d tasks, %d kills", tasks, killed())

	for id := range ids {
		checkTask(t, cl, id)
	}
}

// killAtRandom kills the host as the work goes on, spread over all of it. The
// function it returns waits for the last start and counts.
func killAtRandom(v *victim, done *atomic.Int64, total int64, kills int) func() int {
	n := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for ; n < kills; n++ {
			mark := total * int64(n) / int64(kills)
			for done.Load() < mark {
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(time.Duration(50+rand.IntN(700)) * time.Millisecond)
			v.kill()
			v.start()
		}
	})
	return func() int { wg.Wait(); return n }
}

// crashTask runs one task, half of them by its events.
func crashTask(ctx context.Context, c *client.Client, id string, events bool) error {
	post := client.Post{
		Task: id, Key: "key-" + id,
		Body: `[["send_request",{"target":"math","subject":"s","body":"` + id + `"}],["await_message",{}]]`,
	}
	return answered(ctx, c, post, events, "boss got [Re: s] echo: "+id)
}

// answered posts and wants an answer: it waits for that of the post, or posts,
// follows the events, and posts again under the same key.
func answered(ctx context.Context, c *client.Client, post client.Post, events bool, want string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if events {
		if _, err := c.PostAsync(ctx, post); err != nil {
			return fmt.Errorf("post: %w", err)
		}
		if err := follow(ctx, c, post.Task); err != nil {
			return fmt.Errorf("events: %w", err)
		}
	}
	a, err := c.PostMessage(ctx, post)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if a.Body != want {
		return fmt.Errorf("answer %q, want %q", a.Body, want)
	}
	return nil
}

// follow reads a task's events to its end; their cursors leave no gap.
func follow(ctx context.Context, c *client.Client, id string) error {
	next, ends := int64(1), 0
	for e, err := range c.Stream(ctx, id, 0) {
		if err != nil {
			return err
		}
		if e.Cursor != next {
			return fmt.Errorf("event %d where %d was due", e.Cursor, next)
		}
		next++
		if e.Ends() {
			ends++
		}
	}
	if ends != 1 {
		return fmt.Errorf("%d ends", ends)
	}
	return nil
}

func checkTask(t *testing.T, c *client.Client, id string) {
	t.Helper()
	if err := follow(t.Context(), c, id); err != nil {
		t.Errorf("%s: events: %v", id, err)
	}
	task, err := c.Task(t.Context(), id)
	if err != nil || task.State != "completed" {
		t.Errorf("%s: state %q, %v", id, task.State, err)
	}
	for _, agent := range []string{"boss", "math"} {
		h, err := c.History(t.Context(), id, agent, 0, 100)
		if err != nil {
			t.Errorf("%s: history: %v", id, err)
			continue
		}
		if err := noneTwice(h.Entries); err != nil {
			t.Errorf("%s: history of %s: %v", id, agent, err)
		}
	}
}

// noneTwice checks that a history numbers its entries without a gap and holds
// no message twice.
func noneTwice(entries []json.RawMessage) error {
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
		if err != nil {
			return err
		}
		if seen[m.ID] {
			return errors.New("message " + m.ID + " stands twice")
		}
		seen[m.ID] = true
	}
	if len(seen) == 0 {
		return errors.New("no message at all")
	}
	return nil
}

package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/swarm"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/egress"
	"skep/spec/mail"
)

// swarmName is the simulated swarm, and tenants have it.
const swarmName = "hive"

var tenants = []string{"acme", "bolt"}

// Kit is what all runs share.
type Kit struct {
	Tools swarm.MailTools
	// Dir is where runs keep their files; a file system in memory is faster.
	Dir string
	// Trace is how many lines of a failed run are shown.
	Trace int
}

// Report is what a run has done.
type Report struct {
	Seed       uint64
	Sum        uint64
	Steps      int
	Violations []string
	Counts     map[string]int
	Tail       string
}

// world is one run: what outlives the hosts.
type world struct {
	t      *testing.T
	log    *slog.Logger
	dir    string
	tools  swarm.MailTools
	rng    *rand.Rand
	sched  *scheduler
	sealed bool
	turns  int
	// waits is how many waiting turns keep their sandbox.
	waits  int
	quotas map[string]swarm.Tenant
	peer   *peer
	web    *web
	grants *grants
	ledger *ledger
	// actions and steps are what the workload does.
	actions, steps mix

	lives int
	// host is the one that lives, nil for none. Only the scheduler's goroutine replaces it.
	host *host
	// crashes are the steps at which the host dies.
	crashes []int
	clients sync.WaitGroup
	busy    atomic.Int32

	mu         sync.Mutex
	violations []string
	counts     map[string]int
}

// Run runs one seed. The test must not be parallel to others.
func Run(t *testing.T, kit Kit, seed uint64) (rep Report) {
	dir, err := os.MkdirTemp(kit.Dir, "simulation")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kit, dir, seed)
		w.live()
		rep = Report{
			Seed: seed, Sum: w.sched.trace.sum.Sum64(), Steps: w.sched.trace.steps, Violations: w.violations,
			Counts: w.counts, Tail: w.sched.trace.tail(kit.Trace),
		}
	})
	return rep
}

func newWorld(t *testing.T, kit Kit, dir string, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 0x5ee9))
	// The clock of a bubble begins at midnight; a run begins shortly before one.
	time.Sleep(24*time.Hour - time.Duration(rng.IntN(120))*time.Second)
	w := &world{
		t: t, log: discard(), dir: dir, tools: kit.Tools, rng: rng, sealed: rng.IntN(2) == 0,
		turns: 2 + rng.IntN(8), counts: map[string]int{},
		quotas: map[string]swarm.Tenant{
			tenants[0]: {Quota: swarm.Quota{SpendPerDay: swarm.Spend{Tokens: 3 * maxCost}}},
			tenants[1]: {Quota: swarm.Quota{Queue: 2 + rng.IntN(4)}},
		},
		actions: actions.vary(rng), steps: steps.vary(rng),
	}
	if seed%2 == 1 {
		w.waits = math.MaxInt
	}
	w.sched = newScheduler(rng, newFaults([]int{0, 10, 30, 80}[rng.IntN(4)]))
	w.ledger, w.web, w.grants = newLedger(), newWeb(w), newGrants(w)
	w.peer = newPeer(w)
	for range []int{0, 0, 1, 2}[rng.IntN(4)] {
		w.crashes = append(w.crashes, 5+rng.IntN(250))
	}
	return w
}

// live runs the workload, lets the world settle, and checks it.
func (w *world) live() {
	first := filepath.Join(w.dir, "0")
	w.must(os.Mkdir(first, 0o700))
	h, err := w.startHost(first)
	w.must(err)
	w.setHost(h)
	for i := range 2 + w.rng.IntN(4) {
		c := &client{world: w, name: "c" + strconv.Itoa(i), rng: rand.New(rand.NewPCG(w.rng.Uint64(), uint64(i)))}
		w.busy.Add(1)
		w.clients.Go(c.work)
	}
	rests := w.sched.run(5*time.Minute, func() bool { return w.step() || w.busy.Load() == 0 })
	w.sched.faults.stop()
	w.crashes = nil
	w.sched.trace.add("SETTLE")
	if !w.sched.run(settleTime, w.step) || !rests {
		w.violate("the host does not come to rest")
	}
	if w.host != nil {
		w.check()
	}
	w.close()
}

// settleTime is how long nothing may happen before a run is over: longer than any
// timer, retry and answer of the peer.
const settleTime = 4 * time.Minute

// step crashes the host when it is time, and ends the run when there is no host.
func (w *world) step() (over bool) {
	for w.host != nil && len(w.crashes) > 0 && (w.sched.trace.steps >= w.crashes[0] || w.sched.isParked("store slice") && w.rng.IntN(20) == 0) {
		w.crashes = w.crashes[1:]
		w.crash()
	}
	if w.host == nil {
		return true
	}
	select {
	case <-w.host.over:
		w.violate("the host has ended by itself: %v", w.host.failed)
		w.abandon()
		return true
	default:
		return false
	}
}

// abandon closes a host that has ended.
func (w *world) abandon() {
	close(w.host.dead)
	_ = w.host.store.Close() // the run has failed already
	w.setHost(nil)
}

// close ends everything that still runs.
func (w *world) close() {
	w.ledger.close()
	if w.host != nil {
		close(w.host.dead)
		if err := w.host.stop(); err != nil && !errors.Is(err, swarm.ErrFenced) {
			w.violate("the host does not stop well: %v", err)
		}
		w.setHost(nil)
	}
	close(w.sched.over)
	w.clients.Wait()
	w.peer.close()
}

func (w *world) setHost(h *host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.host = h
}

// living is the host that lives, nil for none.
func (w *world) living() *host {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.host
}

func (w *world) must(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

// delayAnswer lets an answer take so long that a turn which waits for it may lose its sandbox.
func (w *world) delayAnswer(ctx context.Context) {
	if w.waits > 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Millisecond):
	}
}

// violate notes that a promise is broken.
func (w *world) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	w.violations = append(w.violations, text)
	w.sched.trace.note("VIOLATION: %s", text)
}

func (w *world) count(what string) { w.countMany(what, 1) }

func (w *world) countMany(what string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what] += n
}

// bindings binds all agents of all definitions to the one module.
func (w *world) bindings() map[capability.Agent]capability.Binding {
	all := map[capability.Agent]capability.Binding{}
	for _, digest := range w.grants.digests() {
		for _, name := range []string{"boss", "math", "text"} {
			all[capability.Agent{Definition: digest, Name: name}] = capability.Binding{
				Module: module{w}, Fetcher: w.web, Models: map[string]capability.Model{"sim": w.web},
				Allow: capability.Allow{KV: swarm.KVInstance, LLM: []string{"sim"}, HTTP: egress.Policy{}, RetryInDoubt: true},
			}
		}
	}
	return all
}

func principal(tenant, id string) swarm.Principal {
	return swarm.Principal{Tenant: tenant, Role: mail.RoleUser, ID: id}
}

// isRefusal reports whether an error is final: the caller must not come back with the
// same request.
func isRefusal(err error) bool {
	return errors.Is(err, swarm.ErrInvalid) || errors.Is(err, swarm.ErrNotFound) || errors.Is(err, swarm.ErrConflict) || errors.Is(err, swarm.ErrForbidden)
}

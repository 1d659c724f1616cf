package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing/synctest"
	"time"

	"skep/host/internal/peer/router"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/egress"
)

// host is one life of the host: from its start to its death.
type host struct {
	world  *world
	dir    string
	store  *store
	rt     *swarm.Runtime
	exec   *capability.Executor
	router *router.Router
	// dead is closed when the host dies; over is closed when its goroutines have ended.
	dead, over chan struct{}
	cancel     context.CancelFunc
	// failed is why the host ended by itself.
	failed error
}

// park parks an actor of the host.
func (h *host) park(name string, g gate) pass {
	if h.isDead() {
		return pass{fault: hostDied}
	}
	return h.world.sched.park(name, g, h.dead)
}

func (h *host) isDead() bool {
	select {
	case <-h.dead:
		return true
	default:
		return false
	}
}

// startHost starts a host on a directory.
func (w *world) startHost(dir string) (*host, error) {
	ctx := context.Background()
	h := &host{world: w, dir: dir, dead: make(chan struct{}), over: make(chan struct{})}
	h.store = &store{host: h, chore: make(chan struct{}, 1), accepts: map[string]int{}, unsure: map[string]bool{}}
	started := make(chan struct{})
	defer close(started)
	opt := sqlite.Options{Now: h.store.now, Logger: slog.New(startHandler{slog.DiscardHandler, started})}
	if w.sealed {
		opt.Keyring = &keyring.Options{}
	}
	var err error
	if h.store.Store, err = sqlite.Open(ctx, dir, opt); err != nil {
		return nil, err
	}
	// A host reads what tenants have loaded before it serves.
	if _, err := h.store.Store.Loaded(ctx); err != nil {
		go h.abandon() // it waits for the chores
		return nil, err
	}
	h.exec = capability.NewExecutor(w.bindings(), nil, "simulation")
	h.exec.WaitingTurns().Bound(w.waits, time.Millisecond)
	h.router = router.New(router.Options{
		Local: swarmName, Peers: peerList{}, Egress: egress.Options{Dial: w.peer.dial}, Logger: w.log,
		RandomBelow: func(below time.Duration) time.Duration { return below / 2 },
	})
	h.rt, err = swarm.New(ctx, startStore{h.store}, h.exec, forwarder{h.router, h}, w.tools, w.grants.inForce(), swarm.Options{
		Turns: w.turns, Tokens: 8, Tenants: swarm.NewTenantSet(w.quotas), Library: w.grants.olderDefinitions(h), Logger: w.log,
	})
	if err != nil {
		go h.abandon()
		return nil, err
	}
	w.grants.started()
	ctx, h.cancel = context.WithCancel(ctx)
	done := make(chan error, 2)
	go func() { done <- h.rt.Run(ctx, 5*time.Second) }()
	go func() { done <- h.router.Run(ctx, h.rt) }()
	go func() {
		err := <-done
		h.cancel()
		h.failed = errors.Join(err, <-done)
		w.countMany("turn without a sandbox", int(h.exec.WaitingTurns().CountHibernations()))
		close(h.over)
	}()
	return h, nil
}

// startHandler keeps the engine from going on with chores of an earlier host, which it
// logs before, until this host has started.
type startHandler struct {
	slog.Handler
	started chan struct{}
}

func (h startHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h startHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "store goes on with what was cut short" {
		<-h.started
	}
	return nil
}

// abandon closes the store of a host that did not start.
func (h *host) abandon() {
	close(h.dead)
	_ = h.store.Close() // it has failed already
}

// startStore lets a host start: a host whose first read fails is started again, which
// shows nothing.
type startStore struct{ *store }

func (s startStore) RunningTasks(ctx context.Context) ([]swarm.RunningTask, error) {
	return s.Store.RunningTasks(ctx)
}

func (s startStore) Outboxes(ctx context.Context) ([]swarm.OutboxKey, error) {
	return s.Store.Outboxes(ctx)
}

// stop ends the host as a signal does, or after its death.
func (h *host) stop() error {
	h.cancel()
	<-h.over
	return h.store.Close()
}

// crash kills the host, as if all power went: a new one starts on what its files hold
// now.
func (w *world) crash() {
	old := w.host
	w.lives++
	dir := filepath.Join(w.dir, strconv.Itoa(w.lives))
	w.must(copyDir(dir, old.dir))
	w.sched.trace.add("CRASH")
	w.count("crash")
	close(old.dead)
	if err := old.stop(); err != nil {
		w.sched.trace.note("the dead host: %v", err)
	}
	synctest.Wait() // an erasure may be writing the keys of the dead host
	w.must(os.RemoveAll(old.dir))
	h, err := w.startHost(dir)
	if err != nil {
		w.violate("a host does not start after a crash: %v", err)
		w.setHost(nil)
		return
	}
	w.setHost(h)
	synctest.Wait()
}

// copyDir copies the files of a directory.
func copyDir(to, from string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	list, err := os.ReadDir(from)
	for _, e := range list {
		if err == nil && e.Type().IsRegular() {
			err = copyFile(filepath.Join(to, e.Name()), filepath.Join(from, e.Name()))
		}
	}
	return err
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// forwarder lets an actor stop where it hands an outbox to the router.
type forwarder struct {
	*router.Router
	host *host
}

func (f forwarder) Wake(box swarm.OutboxKey) {
	if f.host.park(fmt.Sprintf("wake %s", short(box.Task)), stepGate).fault != hostDied {
		f.Router.Wake(box)
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// submit posts to the host.
func (h *host) submit(ctx context.Context, p swarm.Post) (*swarm.Receipt, error) {
	h.store.countAccepts(p.Principal.Tenant, 1)
	defer h.store.countAccepts(p.Principal.Tenant, -1)
	return h.rt.Submit(ctx, p)
}

// receive hands the host a message of the peer.
func (h *host) receive(ctx context.Context, in swarm.Incoming) (swarm.IncomingReceipt, error) {
	h.store.countAccepts(in.Principal.Tenant, 1)
	defer h.store.countAccepts(in.Principal.Tenant, -1)
	return h.rt.Receive(ctx, in)
}

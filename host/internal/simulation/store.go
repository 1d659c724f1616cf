package simulation

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"skep/abi"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// store is the real store of one host behind gates.
type store struct {
	*sqlite.Store
	host *host
	// writes counts the writes in the engine; chore is held by work that takes many
	// writes, of which slicing lets the engine park between two.
	writes  atomic.Int64
	chore   chan struct{}
	slicing atomic.Bool

	mu sync.Mutex
	// accepts counts the messages that come in for a tenant and may not be durable yet. A
	// tenant is in unsure after a write of it that was durable and reported as failed.
	accepts map[string]int
	unsure  map[string]bool
}

// now is the engine's clock. The engine asks it before each transaction: there its
// writer parks while a chore is in progress. It does not park while another write is in
// the engine, which would wait for it under a mutex.
func (s *store) now() time.Time {
	if s.slicing.Load() && s.writes.Load() == 0 {
		s.host.park("store slice", stepGate)
	}
	return time.Now()
}

// enter parks before a call. A nil error lets the call go on; lost means that its result
// must be reported as a failure.
func (s *store) enter(g gate, format string, args ...any) (lost bool, err error) {
	name := fmt.Sprintf(format, args...)
	switch p := s.host.park("store "+name, g); p.fault {
	case hostDied:
		return false, swarm.ErrFenced
	case slow:
		time.Sleep(time.Duration(p.roll % uint64(5*time.Second)))
		if s.host.park("store "+name+" at last", stepGate).fault == hostDied {
			return false, swarm.ErrFenced
		}
	case unreported:
		return true, nil
	case noFault:
	default:
		return false, errInjected
	}
	return false, nil
}

func read[T any](s *store, do func() (T, error), format string, args ...any) (none T, err error) {
	if _, err := s.enter(readGate, format, args...); err != nil {
		return none, err
	}
	return do()
}

// write does a write. While the engine has it, no slice of a chore parks.
func (s *store) write(tenant string, do func() error, format string, args ...any) error {
	lost, err := s.enter(writeGate, format, args...)
	if err != nil {
		return err
	}
	s.writes.Add(1)
	err = do()
	s.writes.Add(-1)
	if err != nil {
		s.host.world.sched.trace.note("the engine: %v", err)
	}
	died := s.host.isDead()
	if err == nil && (died || lost) {
		s.mu.Lock()
		s.unsure[tenant] = true
		s.mu.Unlock()
		err = errInjected
	}
	if died {
		return swarm.ErrFenced
	}
	return err
}

// work does a chore, which takes many writes.
func (s *store) work(do func() error, format string, args ...any) error {
	if _, err := s.enter(writeGate, format, args...); err != nil {
		return err
	}
	s.chore <- struct{}{}
	defer func() { <-s.chore }()
	s.slicing.Store(true)
	defer s.slicing.Store(false)
	err := do()
	if s.host.isDead() {
		return swarm.ErrFenced // what a dead host has done is lost with its files
	}
	return err
}

// short names a task. A random id is left out: actors are ordered by their names.
func short(key swarm.TaskKey) string {
	if mail.ValidUUID(key.Task) {
		key.Task = "new"
	}
	return key.Tenant + "/" + key.Instance + "/" + key.Task
}

func (s *store) Accept(ctx context.Context, m swarm.Mutation, sub swarm.Submission) (first swarm.Submission, err error) {
	err = s.write(m.Task.Key.Tenant, func() error {
		first, err = s.Store.Accept(ctx, m, sub)
		return err
	}, "accept %s row %d", short(m.Task.Key), sub.Row)
	return first, err
}

// countAccepts counts a call that may reserve a part of a tenant's quota.
func (s *store) countAccepts(tenant string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepts[tenant] += n
}

// isSure reports whether the runtime and the store agree on what waits for a tenant.
func (s *store) isSure(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepts[tenant] == 0 && !s.unsure[tenant] && s.writes.Load() == 0
}

func (s *store) Commit(ctx context.Context, m swarm.Mutation) error {
	return s.write(m.Task.Key.Tenant, func() error { return s.Store.Commit(ctx, m) }, "commit %s %v", short(m.Task.Key), m.Consume)
}

func (s *store) Journal(ctx context.Context, key swarm.TaskKey, turn int64, w swarm.JournalWrite) (ok bool, err error) {
	err = s.write(key.Tenant, func() error {
		ok, err = s.Store.Journal(ctx, key, turn, w)
		return err
	}, "journal %s turn %d", short(key), turn)
	return ok, err
}

func (s *store) Submission(ctx context.Context, key swarm.InstanceKey, door, id string) (swarm.Submission, error) {
	return read(s, func() (swarm.Submission, error) { return s.Store.Submission(ctx, key, door, id) }, "submission %s", id)
}

func (s *store) RunningTasks(ctx context.Context) ([]swarm.RunningTask, error) {
	return read(s, func() ([]swarm.RunningTask, error) { return s.Store.RunningTasks(ctx) }, "running tasks")
}

func (s *store) Load(ctx context.Context, key swarm.TaskKey) (swarm.Snapshot, error) {
	return read(s, func() (swarm.Snapshot, error) { return s.Store.Load(ctx, key) }, "load %s", short(key))
}

func (s *store) LoadQueue(ctx context.Context, key swarm.TaskKey) (swarm.Snapshot, error) {
	return read(s, func() (swarm.Snapshot, error) { return s.Store.LoadQueue(ctx, key) }, "load queue %s", short(key))
}

func (s *store) Instances(ctx context.Context, tenant, name string) ([]swarm.InstanceKey, error) {
	return read(s, func() ([]swarm.InstanceKey, error) { return s.Store.Instances(ctx, tenant, name) }, "instances %s", tenant)
}

func (s *store) Tasks(ctx context.Context, key swarm.InstanceKey, before time.Time, limit int) ([]swarm.Task, error) {
	return read(s, func() ([]swarm.Task, error) { return s.Store.Tasks(ctx, key, before, limit) }, "tasks %s/%s", key.Tenant, key.Instance)
}

func (s *store) Events(ctx context.Context, key swarm.TaskKey, after int64, limit int) ([]swarm.Event, error) {
	return read(s, func() ([]swarm.Event, error) { return s.Store.Events(ctx, key, after, limit) }, "events %s after %d", short(key), after)
}

func (s *store) HistoryTail(ctx context.Context, key swarm.TaskKey, agent string, entries, bytes int) ([]abi.HistoryEntry, error) {
	return read(s, func() ([]abi.HistoryEntry, error) { return s.Store.HistoryTail(ctx, key, agent, entries, bytes) }, "tail %s %s", short(key), agent)
}

func (s *store) Record(ctx context.Context, key swarm.TaskKey, turn int64) (swarm.Record, error) {
	return read(s, func() (swarm.Record, error) { return s.Store.Record(ctx, key, turn) }, "record %s turn %d", short(key), turn)
}

func (s *store) KVGet(ctx context.Context, key swarm.TaskKey, scope swarm.KVScope, name string) ([]byte, error) {
	return read(s, func() ([]byte, error) { return s.Store.KVGet(ctx, key, scope, name) }, "value %s %s", short(key), name)
}

func (s *store) KVUsage(ctx context.Context, key swarm.TaskKey, scope swarm.KVScope) (swarm.KVUsage, error) {
	return read(s, func() (swarm.KVUsage, error) { return s.Store.KVUsage(ctx, key, scope) }, "usage %s", short(key))
}

func (s *store) Outboxes(ctx context.Context) ([]swarm.OutboxKey, error) {
	return read(s, func() ([]swarm.OutboxKey, error) { return s.Store.Outboxes(ctx) }, "outboxes")
}

func (s *store) Footprint(ctx context.Context, tenant string) (swarm.Footprint, error) {
	return read(s, func() (swarm.Footprint, error) { return s.Store.Footprint(ctx, tenant) }, "footprint %s", tenant)
}

func (s *store) Usage(ctx context.Context, q swarm.UsageQuery) ([]swarm.UsageGroup, error) {
	return read(s, func() ([]swarm.UsageGroup, error) { return s.Store.Usage(ctx, q) }, "usage of %s", q.Tenant)
}

func (s *store) HasData(ctx context.Context, tenant string) (bool, error) {
	return read(s, func() (bool, error) { return s.Store.HasData(ctx, tenant) }, "has data %s", tenant)
}

func (s *store) Export(ctx context.Context, tenant string, w io.Writer) error {
	_, err := read(s, func() (struct{}, error) { return struct{}{}, s.Store.Export(ctx, tenant, w) }, "export %s", tenant)
	return err
}

func (s *store) Erase(ctx context.Context, tenant string) error {
	return s.work(func() error { return s.Store.Erase(ctx, tenant) }, "erase %s", tenant)
}

func (s *store) Rotate(ctx context.Context, tenant string) error {
	return s.work(func() error { return s.Store.Rotate(ctx, tenant) }, "rotate %s", tenant)
}

func (s *store) Prune(ctx context.Context, rule swarm.PruneRule) (p swarm.Pruned, err error) {
	err = s.work(func() error {
		p, err = s.Store.Prune(ctx, rule)
		return err
	}, "prune")
	return p, err
}

func (s *store) LoadDefinition(ctx context.Context, l sqlite.Loaded, d sqlite.Definition) error {
	return s.write(l.Tenant, func() error { return s.Store.LoadDefinition(ctx, l, d) }, "load definition %s", l.Tenant)
}

func (s *store) Loaded(ctx context.Context) ([]sqlite.Loaded, error) {
	return read(s, func() ([]sqlite.Loaded, error) { return s.Store.Loaded(ctx) }, "loaded definitions")
}

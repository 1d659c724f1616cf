package quarantine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	mathAgent = Agent{"acme", "hive", "math"}
	textAgent = Agent{"acme", "hive", "text"}
	testTime  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	errAway   = errors.New("the store is away")
)

// memory is a store in memory. After some writes it fails once.
type memory struct {
	list   []Confined
	writes int // until one fails; 0 for none
	// lost is called in place of the answer to the next write, which happens.
	lost func()
	// erasing is a tenant that is being erased.
	erasing string
}

func (m *memory) fail() error {
	if m.writes--; m.writes == 0 {
		return errAway
	}
	return nil
}

func (m *memory) find(a Agent) int {
	return slices.IndexFunc(m.list, func(c Confined) bool { return c.Agent == a })
}

// answer is what is answered to a write that has happened.
func (m *memory) answer() error {
	if m.lost == nil {
		return nil
	}
	m.lost()
	m.lost = nil
	return errAway
}

func (m *memory) Confined(ctx context.Context) ([]Confined, error) {
	return slices.Clone(m.list), ctx.Err()
}

func (m *memory) ConfineAgent(_ context.Context, c Confined) error {
	if c.Tenant == m.erasing {
		return ErrErasing
	}
	if err := m.fail(); err != nil {
		return err
	}
	if m.find(c.Agent) < 0 {
		m.list = append(m.list, c)
	}
	return m.answer()
}

func (m *memory) ReleaseAgent(_ context.Context, a Agent) (bool, error) {
	if err := m.fail(); err != nil {
		return false, err
	}
	i := m.find(a)
	if i >= 0 {
		m.list = slices.Delete(m.list, i, i+1)
	}
	return i >= 0, m.answer()
}

func openQuarantine(t *testing.T, store Store, file string) *Quarantine {
	t.Helper()
	q, err := Open(t.Context(), store, file)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func wantAgents(t *testing.T, q *Quarantine, want ...Confined) {
	t.Helper()
	if diff := cmp.Diff(want, q.Agents()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, c := range want {
		if why, ok := q.Reason(c.Agent); why != c.Why || !ok {
			t.Errorf("the reason of %v is %q, %v", c.Agent, why, ok)
		}
	}
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	store, none := &memory{}, filepath.Join(t.TempDir(), "none")
	q, other := openQuarantine(t, store, none), openQuarantine(t, store, none)
	for _, a := range []Agent{mathAgent, textAgent, mathAgent} {
		if err := q.Confine(t.Context(), a, "digest", "it kills hosts", testTime); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []bool{true, false} {
		if ok, err := q.Release(t.Context(), textAgent); ok != want || err != nil {
			t.Error(ok, err)
		}
	}
	want := Confined{mathAgent, "digest", testTime, "it kills hosts"}
	wantAgents(t, q, want)
	for _, a := range []Agent{textAgent, {"umbrella", "hive", "math"}, {"acme", "other", "math"}} {
		if _, ok := q.Reason(a); ok {
			t.Errorf("%v is confined", a)
		}
	}
	if err := other.Refresh(t.Context()); err != nil {
		t.Error(err)
	}
	wantAgents(t, other, want)
	if ok, err := other.Release(t.Context(), mathAgent); !ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := q.Release(t.Context(), mathAgent); !ok || err != nil {
		t.Error("one that another host has released:", ok, err)
	}
	wantAgents(t, q, []Confined{}...)
}

// What cannot be kept is not in force either: it would be gone at the next start. What cannot be
// released stays in.
func TestQuarantineStoreFails(t *testing.T) {
	t.Parallel()
	store := &memory{writes: 1}
	q := openQuarantine(t, store, filepath.Join(t.TempDir(), "none"))
	if err := q.Confine(t.Context(), mathAgent, "", "why", testTime); !errors.Is(err, errAway) {
		t.Error(err)
	}
	if _, ok := q.Reason(mathAgent); ok {
		t.Error("it is in force")
	}
	if err := q.Confine(t.Context(), mathAgent, "", "why", testTime); err != nil {
		t.Error(err)
	}
	store.writes = 1
	if _, err := q.Release(t.Context(), mathAgent); !errors.Is(err, errAway) {
		t.Error(err)
	}
	wantAgents(t, q, Confined{mathAgent, "", testTime, "why"})
	q.DropTenant("umbrella")
	wantAgents(t, q, Confined{mathAgent, "", testTime, "why"})
	q.DropTenant("acme")
	if _, ok := q.Reason(mathAgent); ok {
		t.Error("an agent outlives its tenant")
	}
}

// A change whose answer is lost, because the caller has left or the store was away, is in force if
// the store has it.
func TestQuarantineAnswerLost(t *testing.T) {
	t.Parallel()
	store := &memory{}
	q := openQuarantine(t, store, filepath.Join(t.TempDir(), "none"))
	ctx, leave := context.WithCancel(t.Context())
	store.lost = leave
	if err := q.Confine(ctx, mathAgent, "", "why", testTime); err != nil || ctx.Err() == nil {
		t.Error(err, ctx.Err())
	}
	wantAgents(t, q, Confined{mathAgent, "", testTime, "why"})
	ctx, leave = context.WithCancel(t.Context())
	store.lost = leave
	if ok, err := q.Release(ctx, mathAgent); !ok || err != nil || ctx.Err() == nil {
		t.Error(ok, err, ctx.Err())
	}
	wantAgents(t, q, []Confined{}...)
	store.writes = 1
	if ok, err := q.Release(t.Context(), mathAgent); ok || !errors.Is(err, errAway) {
		t.Error(ok, err)
	}
}

// An agent that another host has released a moment ago is put in again, also where the list does
// not know that yet.
func TestQuarantineOfOldList(t *testing.T) {
	t.Parallel()
	store, none := &memory{}, filepath.Join(t.TempDir(), "none")
	want := Confined{mathAgent, "", testTime, "why"}
	store.list = []Confined{want}
	q := openQuarantine(t, store, none)
	store.list = nil // another host releases it
	if err := q.Confine(t.Context(), mathAgent, "", "why", testTime); err != nil {
		t.Error(err)
	}
	wantAgents(t, q, want)
	wantAgents(t, openQuarantine(t, store, none), want)
}

// TestQuarantineOfErased: a file with agents of a tenant whose erasure was cut short does not keep
// the host, which is to go on with it, from starting.
func TestQuarantineOfErased(t *testing.T) {
	t.Parallel()
	path, store := filepath.Join(t.TempDir(), "quarantine.json"), &memory{erasing: "acme"}
	const old = `{"version":1,"agents":[
		{"tenant":"acme","swarm":"hive","agent":"math","since":"2026-11-20T12:00:00Z","why":"it kills hosts"},
		{"tenant":"globex","swarm":"hive","agent":"math","since":"2026-11-20T12:00:00Z","why":"it kills hosts"}]}`
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	wantAgents(t, openQuarantine(t, store, path), Confined{Agent{"globex", "hive", "math"}, "", testTime, "it kills hosts"})
}

// Agents in the file of an earlier version are moved into the store, also by a host that starts
// after one that has failed, or died, in between; the file is gone then.
func TestQuarantineOfFile(t *testing.T) {
	t.Parallel()
	const old = `{"version":1,"agents":[
		{"tenant":"acme","swarm":"hive","agent":"math","since":"2026-11-20T12:00:00Z","why":"it kills hosts"},
		{"tenant":"acme","swarm":"hive","agent":"text","module":"digest","since":"2026-11-20T12:00:00Z","why":"it kills hosts too"}]}`
	for failing := range 3 {
		path, store := filepath.Join(t.TempDir(), "quarantine.json"), &memory{writes: failing}
		if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), store, path); failing > 0 != errors.Is(err, errAway) {
			t.Error(err)
		}
		if failing == 0 { // it dies before the file is removed
			if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		wantAgents(t, openQuarantine(t, store, path), Confined{mathAgent, "", testTime, "it kills hosts"}, Confined{textAgent, "digest", testTime, "it kills hosts too"})
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is there: %v", err)
		}
	}
}

func TestDamagedQuarantine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quarantine.json")
	for content, want := range map[string]string{"{": "unexpected end", `{"version":2}`: "its version is 2 and this skep knows 1"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), &memory{}, path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "remove it to release all agents") {
			t.Errorf("%s: %v", content, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error("the file is gone:", err)
		}
	}
}

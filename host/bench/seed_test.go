package main

import (
	"path/filepath"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// A seeded task is one that a host takes up: as long as it says, and it runs if it
// should.
func TestSeed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p, err := newTaskTemplate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(ctx, t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	more := size{events: 450, history: 430, rows: 3}
	if err := p.seed(ctx, s, "ann", "ended", more, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.seed(ctx, s, "ann", "runs", more, waits); err != nil {
		t.Fatal(err)
	}
	keys, err := s.RunningTasks(ctx)
	if err != nil || len(keys) != 1 || keys[0].Task != "runs" || keys[0].Instance != "user:ann" {
		t.Errorf("running: %v, %v", keys, err)
	}
	for _, task := range []string{"ended", "runs"} {
		checkSeeded(t, s, p, more, task)
	}
}

func checkSeeded(t *testing.T, s *sqlite.Store, p taskTemplate, more size, task string) {
	t.Helper()
	ctx := t.Context()
	key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: swarm.DefaultTenant, Swarm: "hive", Instance: "user:ann"}, Task: task}
	snap, err := s.Load(ctx, key)
	if err != nil || len(snap.Rows) != more.rows || snap.Rows[0].Stash != (task == "ended") {
		t.Fatalf("%s: %d rows, %v", task, len(snap.Rows), err)
	}
	own := p.step.Task
	if got := snap.Task.Cursor - own.Cursor; got != int64(more.events) {
		t.Errorf("%s: %d more events", task, got)
	}
	if got := snap.Task.History["boss"] - own.History["boss"]; got != int64(more.history) {
		t.Errorf("%s: %d more entries", task, got)
	}
	tail, err := s.HistoryTail(ctx, key, "boss", abi.HistoryTailEntries, abi.HistoryTailBytes)
	if err != nil || len(tail) != abi.HistoryTailEntries || tail[len(tail)-1].Seq != snap.Task.History["boss"] {
		t.Errorf("%s: a tail of %d, %v", task, len(tail), err)
	}
}

// The configurations of the benchmark are ones that a host takes.
func TestSwarms(t *testing.T) {
	t.Parallel()
	for want, text := range map[int]string{1: benchSwarm, 3: fairSwarm(4), 10_001: parkedSwarm(10_000)} {
		cfg, err := config.Parse("bench.toml", []byte(text), t.TempDir(), config.Options{BundleDir: filepath.Join(guests.Root(), "bin", "plugins")})
		if err != nil {
			t.Fatal(err)
		}
		if len(cfg.Tenants) != want {
			t.Errorf("%d tenants, want %d", len(cfg.Tenants), want)
		}
	}
}

// Sides take turns, each sees its messages in order, and all have as many.
func TestMessagesTakeTurns(t *testing.T) {
	t.Parallel()
	b := &bench{ctx: t.Context(), rounds: 1, span: time.Millisecond}
	var order []string
	var next [2]int
	of := func(k int, name string) side {
		return side{name, func(i int) error {
			if i != next[k] {
				t.Errorf("%s: message %d, want %d", name, i, next[k])
			}
			if next[k]%sliceOf == 0 {
				order = append(order, name)
			}
			next[k]++
			return nil
		}}
	}
	prices, err := b.messages(of(0, "a"), of(1, "b"))
	if err != nil || len(prices) != 2 {
		t.Fatal(prices, err)
	}
	for i, name := range order {
		if want := []string{"a", "b", "b", "a"}[i%4]; name != want {
			t.Fatalf("order %v", order)
		}
	}
	if next[0] != next[1] || next[0] != (slicesARound+1)*sliceOf {
		t.Errorf("messages %v", next)
	}
}

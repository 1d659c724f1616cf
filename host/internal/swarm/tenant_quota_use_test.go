package swarm_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

// countedFootprints counts the reads of footprints.
type countedFootprints struct {
	swarm.Store
	reads *atomic.Int64
}

func (s countedFootprints) Footprint(ctx context.Context, tenant string) (swarm.Footprint, error) {
	s.reads.Add(1)
	return s.Store.Footprint(ctx, tenant)
}

func (s countedFootprints) TenantFootprints(ctx context.Context, after string, limit int) ([]swarm.TenantFootprint, error) {
	s.reads.Add(1)
	return s.Store.TenantFootprints(ctx, after, limit)
}

// usePage is a page as TENANT=TASKS STORED, TASKS and MESSAGES of quotas, and "..." if others follow.
func usePage(t *testing.T, h *hive, after string, limit int) string {
	t.Helper()
	list, more, err := h.rt.TenantUses(t.Context(), after, limit)
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, one := range list {
		text = append(text, fmt.Sprintf("%s=%d %d/%d %d/%d", one.Tenant, one.Tasks, one.Quota[0].Used, one.Quota[0].Limit, one.Quota[1].Used, one.Quota[1].Limit))
	}
	if more {
		text = append(text, "...")
	}
	return strings.Join(text, ", ")
}

// TestTenantUsesOfHosts: a page of tenants of the file and of the store has what runs and waits at all hosts, and
// takes one read of footprints and one count however many tenants it has.
func TestTenantUsesOfHosts(t *testing.T) {
	t.Parallel()
	s := newSharingHives(t, map[string]swarm.Quota{"b": {Tasks: 9, Queue: 5}, "d": {Tasks: 2}, "f": {}},
		swarm.Limits{TaskMessages: 20, TaskTimeout: time.Hour, Queue: 100})
	open := blocked(s.two)
	defer open()
	for range 3 {
		s.two.mustPost("m", of("b"))
	}
	s.beat()
	cluster, reads := &sharingHost{sharedBudget: &sharedBudget{}, others: s.othersOne, running: map[string]int{"b": 4}}, &atomic.Int64{}
	one := newHive(t, withTenants(map[string]swarm.Quota{"b": {Tasks: 9, Queue: 5}, "d": {Tasks: 2}, "f": {}}), func(h *hive) {
		h.opt.Cluster, h.also = cluster, append(h.also, "a", "c", "e")
		h.opt.Tenants = swarm.NewTenantSet(map[string]swarm.Tenant{"b": {Quota: swarm.Quota{Tasks: 9, Queue: 5}}, "d": {Quota: swarm.Quota{Tasks: 2}}, "f": {}})
		h.wrap = func(st swarm.Store) swarm.Store { return countedFootprints{st, reads} }
	})
	one.gainAll()
	for _, tenant := range []string{"a", "c", "e"} {
		one.ask("m", of(tenant))
	}
	for _, test := range []struct {
		after string
		limit int
		want  string
		// counts is how often running tasks are counted.
		counts int
	}{
		{"", 9, "a=1 0/0 0/0, b=0 4/9 3/5, c=1 0/0 0/0, d=0 0/2 0/0, e=1 0/0 0/0, f=0 0/0 0/0", 1},
		{"", 2, "a=1 0/0 0/0, b=0 4/9 3/5, ...", 1},
		{"b", 2, "c=1 0/0 0/0, d=0 0/2 0/0, ...", 1},
		{"d", 2, "e=1 0/0 0/0, f=0 0/0 0/0", 0},
		{"bb", 1, "c=1 0/0 0/0, ...", 0},
		{"f", 2, "", 0},
	} {
		reads.Store(0)
		cluster.counts = 0
		if got := usePage(t, one, test.after, test.limit); got != test.want {
			t.Errorf("%d after %q: %s, want %s", test.limit, test.after, got, test.want)
		}
		if reads.Load() != 1 || cluster.counts != test.counts {
			t.Errorf("%d after %q: %d reads, %d counts", test.limit, test.after, reads.Load(), cluster.counts)
		}
	}
}

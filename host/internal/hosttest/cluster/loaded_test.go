package cluster_test

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// loadedText is a definition within the hosts' file.
func loadedText(description string) string {
	return fmt.Sprintf(`{"swarm":{"name":"hive","entrypoint":"boss","description":%q},"agents":{
		"boss":{"source":"file:script.wasm","comm_targets":["math"],"enable_entrypoint":true,"can_complete_tasks":true},
		"math":{"source":"file:script.wasm","comm_targets":["boss"]}}}`, description)
}

// TestSharedLoaded: a definition that one host loads over the network is in force on all of them, and so is the file's
// own once another one has unloaded it. A host that starts has it, too, and tasks of a lost host go on.
func TestSharedLoaded(t *testing.T) {
	t.Parallel()
	s := reloadSiteOf(t, 3)
	own := s.runs(t, 0)
	if _, err := s.admins[0].LoadSwarm(t.Context(), loadedText("first")); err != nil {
		t.Fatal(err)
	}
	first := s.wantAll(t, own)
	for i, c := range s.admins {
		if d, err := c.Definition(t.Context()); err != nil || d.Origin != "network" || d.By == "" {
			t.Errorf("host %d: %+v, %v", i, d, err)
		}
	}
	loaded := startLoad(t, s.admins[1:], "loaded-", 24, 4)
	s.hosts[0].Kill()
	loaded()
	if _, err := s.admins[1].LoadSwarm(t.Context(), loadedText("second")); err != nil {
		t.Fatal(err)
	}
	s.hosts[0].Start()
	s.waitReady(t, 0)
	second := s.wantAll(t, first)
	if _, err := s.admins[2].UnloadDefinition(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.wantAll(t, second); got != own {
		t.Errorf("unloaded: %s, the file has %s", got, own)
	}
}

// TestSharedLoadedAtOnce: when all hosts load definitions of one tenant at the same time, all end with one of them.
func TestSharedLoadedAtOnce(t *testing.T) {
	t.Parallel()
	s := reloadSiteOf(t, 3)
	before := s.runs(t, 0)
	for round := range 4 {
		var all sync.WaitGroup
		for i, c := range s.admins {
			all.Go(func() {
				if _, err := c.LoadSwarm(t.Context(), loadedText(fmt.Sprint(round, i))); err != nil {
					t.Errorf("host %d: %v", i, err)
				}
			})
		}
		all.Wait()
		before = s.wantAlike(t, before)
	}
}

// wantAlike wants all hosts to run one definition, other than before, for some beats.
func (s *reloadSite) wantAlike(t *testing.T, before string) string {
	t.Helper()
	now := s.wantAll(t, before)
	for range 8 {
		time.Sleep(100 * time.Millisecond)
		now = s.wantAll(t, before)
	}
	return now
}

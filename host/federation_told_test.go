package host_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"skep/abi"
	"skep/host/internal/keyring"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// settled waits until every host has ended its part of a task, and has nothing to
// deliver.
func (c *chain) settled(t *testing.T, task string) {
	t.Helper()
	c.eachPart(t, "settles", task, func(s swarm.Snapshot) bool { return s.Task.State.Ended() && len(s.Letters) == 0 })
}

// ended waits until every host has ended its part of a task. Answers for a host that
// cannot be reached are kept.
func (c *chain) ended(t *testing.T, task string) {
	t.Helper()
	c.eachPart(t, "ends", task, func(s swarm.Snapshot) bool { return s.Task.State.Ended() })
}

func (c *chain) eachPart(t *testing.T, does, task string, done func(swarm.Snapshot) bool) {
	t.Helper()
	for _, p := range places {
		eventuallyTrue(t, p.name+" "+does+" "+task, func() bool {
			parts, err := partsOf(t.Context(), c.hosts[p.name].data(), task)
			return err == nil && !slices.ContainsFunc(parts, func(s swarm.Snapshot) bool { return !done(s) })
		})
	}
}

// partsOf reads what a host has of a task, while it runs.
func partsOf(ctx context.Context, data, task string) (parts []swarm.Snapshot, err error) {
	r, err := sqlite.OpenReader(ctx, data, sealed)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	keys, err := r.Find(ctx, task, 10)
	for _, key := range keys {
		part, broken := r.Load(ctx, key)
		parts, err = append(parts, part), cmp.Or(err, broken)
	}
	return parts, err
}

var sealed = sqlite.Options{Keyring: &keyring.Options{}}

func (v *victim) data() string { return filepath.Join(v.dir, ".skep") }

// told stops the hosts and reads what the agents of each got in the tasks, in
// order. It checks that none got a message twice.
func (c *chain) told(t *testing.T, tasks []string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, p := range places {
		c.hosts[p.name].kill()
		s, err := sqlite.Open(t.Context(), c.hosts[p.name].data(), sealed)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			all[task] = append(all[task], storedMail(t, s, p.name, task)...)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	return all
}

// storedMail reads what a host's agents got in a task, and what of it was given up.
func storedMail(t *testing.T, s *sqlite.Store, name, task string) (got []string) {
	t.Helper()
	instances, err := s.Instances(t.Context(), swarm.DefaultTenant, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range instances {
		snap, err := s.Load(t.Context(), swarm.TaskKey{InstanceKey: key, Task: task})
		if errors.Is(err, swarm.ErrNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for agent := range snap.Task.History {
			got = append(got, takenBy(t, s, snap.Task.Key, agent)...)
		}
	}
	dead, err := s.DeadLetters(t.Context(), swarm.DefaultTenant, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range dead {
		if l.Task.Task == task {
			got = append(got, fmt.Sprintf("%s: dead letter to %s: %s", name, l.Peer, l.Dead.Reason))
		}
	}
	slices.Sort(got)
	return got
}

func takenBy(t *testing.T, s *sqlite.Store, key swarm.TaskKey, agent string) (got []string) {
	t.Helper()
	entries, err := s.History(t.Context(), key, agent, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if e.Kind != abi.KindIn {
			continue
		}
		m, err := mail.ParseMessage(e.Message)
		if err != nil {
			t.Fatal(err)
		}
		if seen[m.ID] {
			t.Errorf("task %s: message %s stands twice in the history of %s in %s", key.Task, m.ID, agent, key.Swarm)
		}
		seen[m.ID] = true
		got = append(got, fmt.Sprintf("%s.%s %s [%s] from %s: %s", key.Swarm, agent, m.Type, m.Payload.Subject, m.Payload.Sender.Name, m.Payload.Body))
	}
	return got
}

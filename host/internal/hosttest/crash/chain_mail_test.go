package crash_test

import (
	"slices"
	"testing"

	"skep/host/internal/hosttest"
	"skep/host/internal/swarm"
)

// waitSettled waits until every host has ended its part of a task, and has nothing to
// deliver.
func (c *chain) waitSettled(t *testing.T, task string) {
	t.Helper()
	c.eachPart(t, "settles", task, func(s swarm.Snapshot) bool { return s.Task.State.Ended() && len(s.Outbox) == 0 })
}

// waitEnded waits until every host has ended its part of a task. Answers for a host that
// cannot be reached are kept.
func (c *chain) waitEnded(t *testing.T, task string) {
	t.Helper()
	c.eachPart(t, "ends", task, func(s swarm.Snapshot) bool { return s.Task.State.Ended() })
}

func (c *chain) eachPart(t *testing.T, does, task string, done func(swarm.Snapshot) bool) {
	t.Helper()
	for _, p := range hostNames {
		hosttest.Eventually(t, p.name+" "+does+" "+task, func() bool {
			parts, err := hosttest.TaskParts(t, c.hosts[p.name].Data(), task)
			return err == nil && !slices.ContainsFunc(parts, func(s swarm.Snapshot) bool { return !done(s) })
		})
	}
}

// storedMail stops the hosts and reads what the agents of each got in the tasks, in
// order. It checks that none got a message twice.
func (c *chain) storedMail(t *testing.T, tasks []string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, p := range hostNames {
		c.hosts[p.name].Kill()
		s := hosttest.OpenStore(t, c.hosts[p.name].Data())
		for _, task := range tasks {
			all[task] = append(all[task], hosttest.StoredMail(t, s, p.name, task)...)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	return all
}

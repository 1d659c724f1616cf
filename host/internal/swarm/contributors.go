package swarm

import (
	"slices"

	"skep/spec/mail"
)

// name takes in what a swarm says of who works on the task (contract 6.4). Those of
// the local swarm are known without anybody's word. The swarms that this one works
// for are believed, and each other one of itself: what it says of third parties is
// hearsay, and little of it is kept.
func (t *Task) name(local, by string, contributors []string) {
	for _, c := range contributors {
		of := swarmOf(c)
		if of == "" || of == local || c != t.Owner && !worker(c) {
			continue
		}
		sure := of == by || t.worksFor(by)
		switch known := slices.Contains(t.Contributors, c); {
		case known && sure && t.hearsay(c):
			t.vouch(c)
		case known, len(t.Contributors) >= maxContributors, !t.worksFor(by) && !t.mayName(by):
		case sure:
			t.vouch(c)
		default:
			t.Contributors, t.Hearsay = append(t.Contributors, c), append(t.Hearsay, c)
		}
	}
}

// worksFor reports whether the task is done here for a swarm.
func (t Task) worksFor(swarm string) bool {
	return t.foreign() && (swarm == t.Caller || swarm == swarmOf(t.Owner))
}

// worker reports whether a string names an instance that works for another swarm.
func worker(contributor string) bool {
	o, err := mail.ParseForeignOwner(contributor)
	return err == nil && o.Role == mail.RoleSwarm
}

// mayName counts one more contributor that a swarm makes known, if it may.
func (t *Task) mayName(swarm string) bool {
	i := slices.IndexFunc(t.Peers, func(p TaskPeer) bool { return p.Swarm == swarm })
	if i < 0 || t.Peers[i].Named >= maxNamed {
		return false
	}
	t.Peers[i].Named++
	return true
}

// vouch puts a contributor that is sure before what was only heard of its swarm: a
// peer looks at the first one that is its own.
func (t *Task) vouch(c string) { t.place(c, t.hearsay) }

// confirm puts the runner that a swarm itself has named before all others of it. One
// for each swarm is kept whatever their number: all are told of the end.
func (t *Task) confirm(runner string) {
	if len(t.Contributors) < maxContributors || !t.contributes(swarmOf(runner)) {
		t.place(runner, func(string) bool { return true })
	}
}

func (t *Task) place(c string, before func(other string) bool) {
	is := func(other string) bool { return other == c }
	i := slices.IndexFunc(t.Contributors, func(other string) bool {
		return is(other) || other != t.Owner && swarmOf(other) == swarmOf(c) && before(other)
	})
	t.Hearsay = slices.DeleteFunc(t.Hearsay, is)
	switch {
	case i < 0:
		t.Contributors = append(t.Contributors, c)
	case !is(t.Contributors[i]):
		t.Contributors = slices.Insert(slices.DeleteFunc(t.Contributors, is), i, c)
	}
}

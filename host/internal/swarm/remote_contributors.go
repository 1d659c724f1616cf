package swarm

import (
	"slices"

	"skep/spec/mail"
)

// mergeContributors adds the contributors that a swarm names. Contributors of the local
// swarm are known. A swarm that this one works for is trusted, any other swarm only
// about itself: contributors of third swarms stay unconfirmed, and few of them are
// kept.
func (t *Task) mergeContributors(local, by string, contributors []string) {
	for _, c := range contributors {
		of := ownerSwarm(c)
		if of == "" || of == local || c != t.Owner && !isSwarmOwner(c) {
			continue
		}
		sure := of == by || t.worksFor(by)
		switch known := slices.Contains(t.Contributors, c); {
		case known && sure && t.isUnconfirmed(c):
			t.promoteContributor(c)
		case known, len(t.Contributors) >= maxContributors, !t.worksFor(by) && !t.countNamed(by):
		case sure:
			t.promoteContributor(c)
		default:
			t.Contributors, t.Unconfirmed = append(t.Contributors, c), append(t.Unconfirmed, c)
		}
	}
}

// worksFor reports whether this swarm works on the task for the given one.
func (t Task) worksFor(swarm string) bool {
	return t.isForeign() && (swarm == t.Caller || swarm == ownerSwarm(t.Owner))
}

// isSwarmOwner reports whether a string is the owner string of a swarm's instance.
func isSwarmOwner(contributor string) bool {
	o, err := mail.ParseForeignOwner(contributor)
	return err == nil && o.Role == mail.RoleSwarm
}

// countNamed counts one more contributor that a swarm names, if its bound allows it.
func (t *Task) countNamed(swarm string) bool {
	i := slices.IndexFunc(t.Peers, func(p TaskPeer) bool { return p.Swarm == swarm })
	if i < 0 || t.Peers[i].Named >= maxNamed {
		return false
	}
	t.Peers[i].Named++
	return true
}

// promoteContributor places a confirmed contributor before unconfirmed ones of its
// swarm: a peer uses the first of its own.
func (t *Task) promoteContributor(c string) { t.placeContributor(c, t.isUnconfirmed) }

// confirmRunner places a runner that its swarm has named before all others of the
// swarm. One for each swarm is kept whatever their number, because all are notified of
// the end.
func (t *Task) confirmRunner(runner string) {
	if len(t.Contributors) < maxContributors || !t.hasContributor(ownerSwarm(runner)) {
		t.placeContributor(runner, func(string) bool { return true })
	}
}

func (t *Task) placeContributor(c string, before func(other string) bool) {
	is := func(other string) bool { return other == c }
	i := slices.IndexFunc(t.Contributors, func(other string) bool {
		return is(other) || other != t.Owner && ownerSwarm(other) == ownerSwarm(c) && before(other)
	})
	t.Unconfirmed = slices.DeleteFunc(t.Unconfirmed, is)
	switch {
	case i < 0:
		t.Contributors = append(t.Contributors, c)
	case !is(t.Contributors[i]):
		t.Contributors = slices.Insert(slices.DeleteFunc(t.Contributors, is), i, c)
	}
}

// Package cluster owns which of several hosts on one PostgreSQL server does what. Work is cut
// into slots, and each slot has at most one host. It must not know what a slot's work is.
//
// # Who is alive
//
// Each host raises its number in the table beats, and watches the others' numbers. A host is
// silent when its number has stayed the same for the time TTL by the watcher's own clock, which
// counts only while the watcher can read: an outage of the server makes no host silent, and no two
// clocks are compared.
//
// # What time it is
//
// Each beat reads the server's clock, so that hosts whose own clocks differ agree on deadlines, expiries and days. It
// decides nothing of who is alive.
//
// # What a host that is silent can still do
//
// Nothing. It is fenced before its slots are taken: its row in hosts is marked dead, and each of
// its groups of writes begins with an update of this row that then fails (see
// [skep/host/internal/store/postgres]). A group that holds the row is waited for, or ended with
// its session. So all that the old host has written is there before the new one reads.
//
// # What other hosts have changed
//
// Something that hosts keep in memory and change in the server has a number in the table changes,
// which a change raises in its own transaction. Each beat reads the numbers, and what has another
// one is read again. A notice of the server makes a host read them earlier; nothing depends on it.
//
// # What all hosts run
//
// The row of inforce has the configuration that all hosts run. A reload has two phases: a host
// proposes its file there, each host that lives prepares its own and votes, and the one that has
// proposed puts it in force in one statement, which does nothing unless all have voted for it. Then each
// host adopts what it has prepared. What is in force decides, whoever is killed meanwhile: a proposal
// whose host is dead is none, and a host that does not run what is in force prepares it again, or
// ends. A host gives no first sign of life before it runs what is in force.
//
// # What hosts do together
//
// A chore is work on a tenant in which each host has a part, as forgetting what it has of a tenant that is
// erased. Its row in shared_chores has a phase. Each live host does its part of the phase and acknowledges it;
// a host that is fenced is waited for no longer. Then the host that drives the chore does what is to be done
// once, and begins the next phase. When it dies another one drives the chore. A host that joins does its part
// of the phases that have begun before it takes slots.
//
// # What hosts have of a limit
//
// Limits that all hosts hold together are exact at each host for its own part. Of the others it knows what they have
// shown with their last signs of life in the table loads.
//
// # What may have killed a host
//
// Each host writes which of its work computes. What a dead host computed is noted with its death,
// once for each life of a host, for whoever takes its slots. A host that is started again takes no slots before others
// have done what it computed when it died, as far as that is still to be done.
package cluster

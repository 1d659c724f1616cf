package swarm

import (
	"fmt"
	"slices"
	"testing"

	"skep/spec/mail"
)

// ofHive is a task of hive's that has to do with depot.
func ofHive() Task {
	t := Task{Owner: "user:alice@hive", Contributors: []string{"user:alice@hive"}}
	t.recordPeer("depot", "stock")
	t.confirmRunner("swarm:hive@depot")
	return t
}

// Contributors of third swarms that a contributor names stay unconfirmed, and their
// number is bounded.
func TestHearsay(t *testing.T) {
	task := ofHive()
	task.mergeContributors("hive", "depot", []string{
		"swarm:evil@yard", "user:eve@yard", "nonsense", "swarm:x@hive", "swarm:hive@depot", "swarm:two@depot",
	})
	want := []string{"user:alice@hive", "swarm:hive@depot", "swarm:evil@yard", "swarm:two@depot"}
	if !slices.Equal(task.Contributors, want) {
		t.Errorf("contributors %q, want %q", task.Contributors, want)
	}
	if task.involves("yard") || task.hasContributor("yard") || !task.hasContributor("depot") {
		t.Errorf("hearsay counts: %q", task.Unconfirmed)
	}
	letter := OutboxMessage{Peer: "yard", Message: mail.Message{Payload: mail.Payload{Sender: mail.Address{Type: mail.Agent, Name: "boss"}}}}
	if got := task.wrapMessage(letter, "hive").TaskContributors; slices.Contains(got, "swarm:evil@yard") {
		t.Errorf("others are told of hearsay: %q", got)
	}
	for i := range 3 * maxNamed {
		task.mergeContributors("hive", "depot", []string{fmt.Sprintf("swarm:n%d@more", i)})
	}
	if len(task.Contributors) != 2+maxNamed {
		t.Errorf("%d contributors", len(task.Contributors))
	}
	task.mergeContributors("hive", "stranger", []string{"swarm:s@stranger"})
	if task.hasContributor("stranger") {
		t.Error("a swarm without a part names itself")
	}
}

// The runner that a swarm itself names comes before what others say of it.
func TestRunnerComesFirst(t *testing.T) {
	task := ofHive()
	task.mergeContributors("hive", "depot", []string{"swarm:evil@yard"})
	task.confirmRunner("swarm:hive@yard")
	want := []string{"user:alice@hive", "swarm:hive@depot", "swarm:hive@yard", "swarm:evil@yard"}
	if !slices.Equal(task.Contributors, want) || !task.hasContributor("yard") {
		t.Errorf("contributors %q, hearsay %q", task.Contributors, task.Unconfirmed)
	}
	task.confirmRunner("swarm:hive@yard")
	task.confirmRunner("swarm:hive@depot")
	if !slices.Equal(task.Contributors, want) {
		t.Errorf("told again: %q", task.Contributors)
	}
	task.recordPeer("yard", "boss")
	task.mergeContributors("hive", "yard", []string{"swarm:evil@yard", "swarm:third@yard"})
	if want := slices.Insert(want, 4, "swarm:third@yard"); !slices.Equal(task.Contributors, want) || len(task.Unconfirmed) > 0 {
		t.Errorf("contributors %q, hearsay %q", task.Contributors, task.Unconfirmed)
	}
}

// The owner's and the caller's swarm may add contributors, up to a bound. Contributors
// that this swarm has written to have no bound: all are notified of the end.
func TestContributorsAreBounded_R036(t *testing.T) {
	task := Task{Owner: "user:u@home", Caller: "hive", Contributors: []string{"user:u@home"}}
	for i := range 2 * maxContributors {
		task.mergeContributors("depot", "hive", []string{fmt.Sprintf("swarm:n%d@s%d", i, i)})
	}
	if len(task.Contributors) != maxContributors || !task.involves("s0") || !task.involves("home") || task.involves(fmt.Sprint("s", maxContributors)) {
		t.Errorf("%d contributors", len(task.Contributors))
	}
	task.confirmRunner("swarm:depot@late")
	task.confirmRunner("swarm:other@late")
	if !task.hasContributor("late") || len(task.Contributors) != maxContributors+1 {
		t.Errorf("%d contributors", len(task.Contributors))
	}
	for i := range 2 * maxPeers {
		task.recordIncomingPeer(fmt.Sprint("s", i), "boss")
	}
	if len(task.Peers) != maxPeers {
		t.Errorf("%d peers were heard of", len(task.Peers))
	}
	task.recordPeer("late", "boss")
	task.recordIncomingPeer("s0", "other")
	if got, ok := task.findPeer("late"); !ok || got.Agent != "boss" || task.Peers[0].Agent != "other" {
		t.Errorf("peers %+v", task.Peers)
	}
}

// A system message of another swarm to an agent has the tier of mail.
func TestRankOfAnotherSystem(t *testing.T) {
	for kind, want := range map[mail.Type]int{mail.Response: mail.TierMail, mail.Interrupt: mail.TierInterrupt} {
		m := mail.Message{Type: kind, Payload: mail.Payload{Sender: mail.Address{Type: mail.System, Name: "depot"}}}
		if row := (Incoming{Peer: "depot"}).newRow(m, "boss"); row.Tier != want || row.Message.Payload.Sender.Type != mail.System {
			t.Errorf("%s: %+v", kind, row)
		}
	}
}

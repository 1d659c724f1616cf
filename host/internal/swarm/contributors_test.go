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
	t.meet("depot", "stock")
	t.confirm("swarm:hive@depot")
	return t
}

// What a contributor says of third parties counts for nothing, and its number is
// bounded (contract 6.4).
func TestHearsay(t *testing.T) {
	task := ofHive()
	task.name("hive", "depot", []string{
		"swarm:evil@yard", "user:eve@yard", "nonsense", "swarm:x@hive", "swarm:hive@depot", "swarm:two@depot",
	})
	want := []string{"user:alice@hive", "swarm:hive@depot", "swarm:evil@yard", "swarm:two@depot"}
	if !slices.Equal(task.Contributors, want) {
		t.Errorf("contributors %q, want %q", task.Contributors, want)
	}
	if task.knows("yard") || task.contributes("yard") || !task.contributes("depot") {
		t.Errorf("hearsay counts: %q", task.Hearsay)
	}
	letter := Letter{Peer: "yard", Message: mail.Message{Payload: mail.Payload{Sender: mail.Address{Type: mail.Agent, Name: "boss"}}}}
	if got := task.wrap(letter, "hive").TaskContributors; slices.Contains(got, "swarm:evil@yard") {
		t.Errorf("others are told of hearsay: %q", got)
	}
	for i := range 3 * maxNamed {
		task.name("hive", "depot", []string{fmt.Sprintf("swarm:n%d@more", i)})
	}
	if len(task.Contributors) != 2+maxNamed {
		t.Errorf("%d contributors", len(task.Contributors))
	}
	task.name("hive", "stranger", []string{"swarm:s@stranger"})
	if task.contributes("stranger") {
		t.Error("a swarm without a part names itself")
	}
}

// The runner that a swarm itself names comes before what others say of it.
func TestRunnerComesFirst(t *testing.T) {
	task := ofHive()
	task.name("hive", "depot", []string{"swarm:evil@yard"})
	task.confirm("swarm:hive@yard")
	want := []string{"user:alice@hive", "swarm:hive@depot", "swarm:hive@yard", "swarm:evil@yard"}
	if !slices.Equal(task.Contributors, want) || !task.contributes("yard") {
		t.Errorf("contributors %q, hearsay %q", task.Contributors, task.Hearsay)
	}
	task.confirm("swarm:hive@yard")
	task.confirm("swarm:hive@depot")
	if !slices.Equal(task.Contributors, want) {
		t.Errorf("told again: %q", task.Contributors)
	}
	task.meet("yard", "boss")
	task.name("hive", "yard", []string{"swarm:evil@yard", "swarm:third@yard"})
	if want := slices.Insert(want, 4, "swarm:third@yard"); !slices.Equal(task.Contributors, want) || len(task.Hearsay) > 0 {
		t.Errorf("contributors %q, hearsay %q", task.Contributors, task.Hearsay)
	}
}

// The owner's swarm and the one that called may bring others in, up to a bound. Those
// that this swarm has written to have none: all are told of the end.
func TestContributorsAreBounded_R036(t *testing.T) {
	task := Task{Owner: "user:u@home", Caller: "hive", Contributors: []string{"user:u@home"}}
	for i := range 2 * maxContributors {
		task.name("depot", "hive", []string{fmt.Sprintf("swarm:n%d@s%d", i, i)})
	}
	if len(task.Contributors) != maxContributors || !task.knows("s0") || !task.knows("home") || task.knows(fmt.Sprint("s", maxContributors)) {
		t.Errorf("%d contributors", len(task.Contributors))
	}
	task.confirm("swarm:depot@late")
	task.confirm("swarm:other@late")
	if !task.contributes("late") || len(task.Contributors) != maxContributors+1 {
		t.Errorf("%d contributors", len(task.Contributors))
	}
	for i := range 2 * maxPeers {
		task.hearOf(fmt.Sprint("s", i), "boss")
	}
	if len(task.Peers) != maxPeers {
		t.Errorf("%d peers were heard of", len(task.Peers))
	}
	task.meet("late", "boss")
	task.hearOf("s0", "other")
	if got, ok := task.peer("late"); !ok || got.Agent != "boss" || task.Peers[0].Agent != "other" {
		t.Errorf("peers %+v", task.Peers)
	}
}

// What another swarm's system says to an agent has the rank of mail.
func TestRankOfAnotherSystem(t *testing.T) {
	for kind, want := range map[mail.Type]int{mail.Response: mail.TierMail, mail.Interrupt: mail.TierInterrupt} {
		m := mail.Message{Type: kind, Payload: mail.Payload{Sender: mail.Address{Type: mail.System, Name: "depot"}}}
		if row := (Incoming{Peer: "depot"}).row(m, "boss"); row.Tier != want || row.Message.Payload.Sender.Type != mail.System {
			t.Errorf("%s: %+v", kind, row)
		}
	}
}

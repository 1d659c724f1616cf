package host_test

import (
	"regexp"
	"strings"
	"testing"

	"skep/host/client"
)

// A swarm that could not answer refuses to be asked, so that whoever asks hears of
// it at once: one that does not know the swarm that asks, and one that has lost its
// token. A broadcast comes in.
func TestNoWayBack(t *testing.T) {
	t.Parallel()
	u := unite(t, "1m", []string{"hive", "depot", "yard"})
	u.edit(t, "depot", "[peers.hive]", "[peers.other]")
	token := regexp.MustCompile(`(?m)^auth_token = .*$`).FindString(peerTables("yard", "hive", u.links["hive"].URL, "1m"))
	u.edit(t, "yard", token+"\n", "")
	for _, peer := range []string{"depot", "yard"} {
		a := u.ask(t, "hive", "ask-"+peer, requestOf("math@"+peer, "x"))
		if !strings.HasPrefix(a.Body, "boss got [::router_error::]") || !strings.Contains(a.Body, "swarm '"+peer+"' has no way back to 'hive': add [peers.hive]") {
			t.Errorf("answer %+v", a)
		}
		tell := script(step{"send_broadcast", args{"subject": "news", "body": "n", "targets": []string{"math@" + peer}}}, step{"task_complete", args{"finish_message": "told"}})
		if a := u.ask(t, "hive", "tell-"+peer, tell); a.Body != "told" {
			t.Errorf("answer %+v", a)
		}
		eventuallyTrue(t, "the news at "+peer, func() bool {
			parts, err := partsOf(t.Context(), u.sites[peer].data, "tell-"+peer)
			return err == nil && len(parts) == 1
		})
	}
}

// An answer that is refused at the door, as it is not signed, is told in the task
// that waits for it.
func TestUnsealedAnswer(t *testing.T) {
	t.Parallel()
	u := unite(t, "10s", []string{"hive", "depot"})
	u.pin(t, "hive", "depot")
	if _, err := u.sites["hive"].as(aliceKey).PostAsync(t.Context(), client.Post{Body: requestOf("math@depot", "x"), Task: "t"}); err != nil {
		t.Fatal(err)
	}
	eventuallyTrue(t, "the task tells", func() bool {
		parts, err := partsOf(t.Context(), u.sites["hive"].data, "t")
		return err == nil && len(parts) == 1 && parts[0].Task.TurnedAway == 1
	})
}

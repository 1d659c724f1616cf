package federation_test

import (
	"regexp"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// A swarm that could not answer refuses to be asked, so that the asker gets the
// refusal at once: one that does not know the swarm that asks, and one that has lost its
// token. A broadcast comes in.
func TestNoWayBack(t *testing.T) {
	t.Parallel()
	u := newFederation(t, "1m", []string{"hive", "depot", "yard"})
	u.edit(t, "depot", "[peers.hive]", "[peers.other]")
	token := regexp.MustCompile(`(?m)^auth_token = .*$`).FindString(hosttest.PeerTables("yard", "hive", u.links["hive"].URL, "1m"))
	u.edit(t, "yard", token+"\n", "")
	for _, peer := range []string{"depot", "yard"} {
		a := u.ask(t, "hive", "ask-"+peer, hosttest.RequestOf("math@"+peer, "x"))
		if !strings.HasPrefix(a.Body, "boss got [::router_error::]") || !strings.Contains(a.Body, "swarm '"+peer+"' has no way back to 'hive': add [peers.hive]") {
			t.Errorf("answer %+v", a)
		}
		tell := hosttest.Script(hosttest.Step{"send_broadcast", hosttest.Args{"subject": "news", "body": "n", "targets": []string{"math@" + peer}}}, hosttest.Step{"task_complete", hosttest.Args{"finish_message": "told"}})
		if a := u.ask(t, "hive", "tell-"+peer, tell); a.Body != "told" {
			t.Errorf("answer %+v", a)
		}
		hosttest.Eventually(t, "the news at "+peer, func() bool {
			parts, err := hosttest.TaskParts(t, u.sites[peer].Data, "tell-"+peer)
			return err == nil && len(parts) == 1
		})
	}
}

// An answer that is refused, as it is not signed, is counted in the task
// that waits for it.
func TestUnsignedAnswer(t *testing.T) {
	t.Parallel()
	u := newFederation(t, "1m", []string{"hive", "depot"})
	u.pin(t, "hive", "depot")
	if _, err := u.sites["hive"].As(hosttest.AliceKey).PostAsync(t.Context(), client.Post{Body: hosttest.RequestOf("math@depot", "x"), Task: "t"}); err != nil {
		t.Fatal(err)
	}
	hosttest.Eventually(t, "the task tells", func() bool {
		parts, err := hosttest.TaskParts(t, u.sites["hive"].Data, "t")
		return err == nil && len(parts) == 1 && parts[0].Task.RefusedWrappers == 1
	})
}

package swarm_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// No caller writes in the name of the host's own swarm, whatever vouches for it: its
// messages would reach the tasks of all users of their tenant.
func TestOwnSwarmIsNoPeer(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "gone"})
	hive.mustPost(`[["send_request",{"target":"math@depot","subject":"1","body":"[]"}],["await_message",{}]]`, task("t"))
	before := hive.record("t").Task
	for _, name := range []string{"hive", "HIVE", ""} {
		for _, back := range []bool{true, false} {
			w := foreign("t", func(w *mail.Interswarm) {
				w.SourceSwarm, w.Type, w.TaskOwner = "hive", mail.Response, before.Owner
				w.TaskContributors = slices.Clone(before.Contributors)
				w.Payload.Sender.Name, w.Payload.Subject = "boss@hive", "a forged word"
			})
			_, err := hive.runtime().Receive(t.Context(), swarm.Incoming{
				Principal: swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleSwarm, ID: name},
				Peer:      name, Swarm: "hive", Back: back, Wrapper: w,
			})
			if !errors.Is(err, swarm.ErrForbidden) || !strings.Contains(err.Error(), "for another swarm than 'hive'") {
				t.Errorf("as %q, back %v: %v", name, back, err)
			}
		}
	}
}

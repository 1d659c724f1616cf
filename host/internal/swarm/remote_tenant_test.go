package swarm_test

import (
	"errors"
	"testing"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// A peer's principal of one tenant answers no task of another, unless the operator has
// given it the key for all.
func TestAnswerOfAnotherTenant(t *testing.T) {
	for name, c := range map[string]struct {
		tenant    string
		anyTenant bool
		taken     bool
	}{
		"its own tenant":     {"acme", false, true},
		"another tenant":     {"bolt", false, false},
		"the host's tenant":  {swarm.DefaultTenant, false, false},
		"the operator's key": {swarm.DefaultTenant, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHive(t, func(h *hive) {
				h.also = []string{"acme", "bolt"}
				h.forward = anyForwarder{}
				h.def.Interswarm, h.def.Agents[0].Interswarm = true, true
				h.def.Agents[0].Targets = append(h.def.Agents[0].Targets, "calc@depot")
			})
			r := h.mustPost(requestTo("calc@depot", "x"), ofTenant("acme"), task("t"))
			eventually(t, "the request", func() bool {
				snap, err := h.store.Load(t.Context(), r.Task)
				return err == nil && len(snap.Outbox) == 1
			})
			w := foreign("t", func(w *mail.Interswarm) {
				w.Type, w.TaskOwner = mail.Response, "user:acme/alice@hive"
				w.TaskContributors = []string{"user:acme/alice@hive", "swarm:acme/hive@depot"}
				w.Payload.Sender.Name, w.Payload.Recipients[0].Name = "calc@depot", "boss@hive"
			})
			_, err := h.rt.Receive(t.Context(), swarm.Incoming{
				Principal: swarm.Principal{Tenant: c.tenant, Role: mail.RoleSwarm, ID: "depot"}, Peer: "depot", AnyTenant: c.anyTenant,
				Swarm: "hive", Back: true, Wrapper: w,
			})
			if taken := err == nil; taken != c.taken || !taken && !errors.Is(err, swarm.ErrNotFound) {
				t.Errorf("the answer is answered with %v", err)
			}
			snap, err := h.store.Load(t.Context(), r.Task)
			if open := len(snap.Task.Requests) == 1; err != nil || open == c.taken {
				t.Errorf("open requests %v, %v", snap.Task.Requests, err)
			}
		})
	}
}

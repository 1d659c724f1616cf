package door_test

import (
	"errors"
	"testing"

	"skep/host/internal/gateway"
)

// TestAskWhileErased: a message that comes while its tenant is erased may come again, and is
// taken then.
func TestAskWhileErased(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	c := acme()
	wantAnswer(t, k.wait(t, k.mustAsk(t, c, ask("m1", "calc", "x"))), gateway.Done, "echo: x")
	again := ask("m2", "calc", "x")
	err := k.swarm.EraseTenant(t.Context(), c.Principal.Tenant, func() error {
		_, err := k.Ask(t.Context(), c, again)
		return err
	})
	if !errors.Is(err, gateway.ErrBusy) {
		t.Errorf("meanwhile: %v", err)
	}
	wantAnswer(t, k.wait(t, k.mustAsk(t, c, again)), gateway.Done, "echo: x")
}

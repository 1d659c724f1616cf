package door_test

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// TestOpenExchangeHoldsNoContent: what a message brought can be collected while its agent works on the
// answer. A digest that was a slice of the message held all of it.
func TestOpenExchangeHoldsNoContent(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	works, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	k.agents.set("boss", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		works <- struct{}{}
		<-end
		return respond(tn, "done")
	})
	for name, c := range map[string]gateway.Caller{"a realm": acme(), "a user": alice()} {
		a := ask("m-"+name, "boss", "x")
		a.Raw, a.Parts = make([]byte, 1<<20), []gateway.Part{{Name: "data", Type: "text/plain", Data: make([]byte, 1<<20)}}
		raw, data := weak.Make(&a.Raw[0]), weak.Make(&a.Parts[0].Data[0])
		x := k.mustAsk(t, c, a)
		a = gateway.Ask{}
		<-works
		for range 10 { // a frame of the writer may be read once more
			runtime.GC()
		}
		if raw.Value() != nil || data.Value() != nil {
			t.Errorf("of the message of %s are held: raw %v, data %v", name, raw.Value() != nil, data.Value() != nil)
		}
		runtime.KeepAlive(x)
	}
}

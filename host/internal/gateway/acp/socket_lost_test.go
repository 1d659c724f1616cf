package acp_test

import (
	"net/http"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/acptest"
	"skep/spec/mail"
)

// TestCarryOverLostSocket: a question whose socket ends before the answer is asked again,
// under the same id, at the address: it does not wait for the whole timeout. Its answer is brought
// once.
func TestCarryOverLostSocket(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	c := o.dial(t)
	exchange(t, c, acptest.New("QUERY", "agentB", "calc", "1").Text())
	carried := make(chan gateway.Carried, 1)
	go func() {
		got := gateway.Carried{State: gateway.Unanswered}
		for got.State == gateway.Unanswered {
			got = o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "agentB", "how many?"))
		}
		carried <- got
	}()
	asked, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the ping behind the question is answered
		exchange(t, c, acptest.New("QUERY", "agentB", "calc", "1").Text())
	}
	c.Close()
	again := o.gets(t, 1)[0]
	if again.Header.ID != asked.Header.ID {
		t.Errorf("asked as %s and again as %s", asked.Header.ID, again.Header.ID)
	}
	m := again.Reply("RESPONSE", "seven")
	for range 2 {
		if r := o.send(t, m); r.Status != http.StatusAccepted {
			t.Errorf("the answer: %d %s", r.Status, r.Text)
		}
	}
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("%+v", got)
	}
	if brought := o.rt.take(); len(brought) != 1 {
		t.Errorf("brought %+v", brought)
	}
}

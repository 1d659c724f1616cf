package gateway_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/acp/broker"
	"skep/host/internal/hosttest"
)

// operatorKey is the table of the operator's key.
const operatorKey = "[[auth.keys]]\nid = \"ops\"\nrole = \"operator\"\nkey = \"" + hosttest.OperatorKey + "\"\n"

// deadLetter waits for the one dead letter of the tenant.
func deadLetter(t *testing.T, c *client.Client) (dead client.DeadLetter) {
	t.Helper()
	hosttest.Eventually(t, "a dead letter", func() bool {
		list, _, err := c.DeadLetters(t.Context(), "", 10)
		if err != nil || len(list) > 1 {
			t.Fatal(list, err)
		}
		if len(list) == 1 {
			dead = list[0]
		}
		return len(list) == 1
	})
	return dead
}

// TestLostSocketInDoubt: with retry_in_doubt = false a question whose WebSocket ends before its
// answer is not sent again, neither on the next WebSocket nor into the mailbox. It is a dead letter, and the
// asker has the reason.
func TestLostSocketInDoubt(t *testing.T) {
	t.Parallel()
	hive := hosttest.NewSite(t, withACP(file("hive", shopOverACP("retry_in_doubt = false\n")+operatorKey)))
	op := hive.As(hosttest.OperatorKey)
	socket, err := acptest.Dial(t.Context(), hive.URL(), shopToken)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan string, 1)
	alice := hive.As(hosttest.AliceKey)
	go func() {
		got, err := alice.PostMessage(t.Context(), client.Post{Body: hosttest.RequestOf("agentB@shop", "how many?")})
		if err != nil {
			got.Body = err.Error()
		}
		answered <- got.Body
	}()
	if asked, err := socket.Read(t.Context()); err != nil || asked.Body != "how many?" {
		t.Fatalf("agentB is asked %+v, %v", asked, err)
	}
	socket.Close()
	const reason = "may have it, and it is not sent twice (retry_in_doubt = false): the connection was lost before the answer"
	if got := <-answered; !strings.Contains(got, reason) {
		t.Errorf("alice got %s", got)
	}
	if dead := deadLetter(t, op); dead.Peer != "shop" || !strings.Contains(dead.Reason, reason) {
		t.Errorf("dead is %+v", dead)
	}
	shop := acptest.Client{URL: hive.URL() + "/acp/v1/messages", Token: shopToken}
	if list := mailOf(t, shop, "agentB"); len(list) > 0 {
		t.Errorf("the mailbox has %q", list)
	}
	next, err := acptest.Dial(t.Context(), hive.URL(), shopToken)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.Close)
	q := acptest.New("REQUEST", "agentA", "boss", hosttest.Script(hosttest.Step{"task_complete", hosttest.Args{"finish_message": "here"}}))
	if err := next.Send(t.Context(), q.Text()); err != nil {
		t.Fatal(err)
	}
	if got, err := next.Read(t.Context()); err != nil || got.Header.ReplyTo != q.Header.ID {
		t.Errorf("on the next WebSocket came %+v, %v", got, err)
	}
}

// renamedOverACP is a partner NAME with topics at a broker.
const renamedOverACP = `[gateways.acp.mqtt]
broker = "mqtt://BROKER"
[gateways.acp.partners.NAME]
ids = ["agent*"]
topics = "acp/v1/acme"
give_up = "5m"
[[auth.keys]]
id = "NAME"
role = "agent"
key = "a-key-of-the-partner-at-hive"
`

// TestRenamedPartner: an answer that waits for a broker when its partner gets another name is a dead
// letter that names the old one. With that name again it is sent on demand, as it was.
func TestRenamedPartner(t *testing.T) {
	t.Parallel()
	b := hosttest.StartMosquitto(t, "allow_anonymous true\n", nil)
	named := func(name string) string {
		return withACP(file("hive", strings.NewReplacer("NAME", name, "BROKER", b.Addr).Replace(renamedOverACP)+operatorKey))
	}
	s := hosttest.NewSite(t, named("acme"))
	b.Kill()
	acme := acptest.Client{URL: s.URL() + "/acp/v1/messages", Token: "a-key-of-the-partner-at-hive"}
	q := acptest.New("REQUEST", "agentA", "boss", hosttest.Script(hosttest.Step{"task_complete", hosttest.Args{"finish_message": "seven"}}))
	r, err := acme.Send(q.Text(), "Prefer", "respond-async")
	if err != nil || r.Status != http.StatusAccepted {
		t.Fatalf("it is taken with %d %s, %v", r.Status, r.Text, err)
	}
	hosttest.Eventually(t, "the answer is there", func() bool {
		r, err := acme.Get(s.URL() + r.Header.Get("Location"))
		return err == nil && r.Status == http.StatusOK
	})
	s.Write(named("depot"))
	s.Restart()
	dead := deadLetter(t, s.As(hosttest.OperatorKey))
	if dead.Peer != "acme" || !strings.Contains(dead.Reason, "a partner of that name") {
		t.Errorf("dead is %+v", dead)
	}
	s.Write(named("acme"))
	s.Restart()
	b.Start(t)
	got := make(chan string, 10)
	peer := broker.New(broker.Options{
		URL: "mqtt://" + b.Addr, ClientID: "peer", Filter: "acp/v1/acme/agentA/in", MaxPacket: 1 << 20, Log: slog.New(slog.DiscardHandler),
		Take: func(_ context.Context, m broker.Message) bool {
			got <- string(m.Payload)
			return true
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		peer.Run(ctx)
	}()
	defer func() {
		stop()
		<-ended
	}()
	hosttest.Eventually(t, "acme is at the broker", func() bool { return peer.State() == nil })
	if err := s.As(hosttest.OperatorKey).ResendDeadLetter(t.Context(), dead.ID); err != nil {
		t.Fatal(err)
	}
	if m, err := acptest.Parse([]byte(<-got)); err != nil || m.Header.Type != "RESPONSE" || m.Header.ReplyTo != q.Header.ID || !strings.Contains(m.Body, "seven") {
		t.Errorf("it got %+v, %v", m, err)
	}
}

package crash_test

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/hosttest"
)

// mqttSwarm serves boss to the partner acme over a broker.
const mqttSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
enable_interswarm = true
[agents.boss]
source = "file:script.wasm"
comm_targets = ["*@*"]
enable_entrypoint = true
can_complete_tasks = true
enable_interswarm = true
expose = ["acp"]
[gateways.acp.mqtt]
broker = "mqtt://BROKER"
username = "hive"
[gateways.acp.partners.acme]
ids = ["agent*"]
may = ["ask", "tell"]
topics = "acp/v1/acme"
give_up = "5m"
timeout = "5m"
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator"
`

// TestMQTT: over a real broker a partner's agents ask ours and are
// asked, by configuration alone. Who sends is shown by the topic. When the broker is
// killed, or the host, each question has one answer and one turn, and what waits is sent
// when both are back.
func TestMQTT(t *testing.T) {
	t.Parallel()
	b := newMosquitto(t)
	h := hosttest.StartProcess(t, strings.Replace(mqttSwarm, "BROKER", b.Addr, 1))
	p := newMQTTPeer(t, b)
	alice := h.ClientAs(hosttest.AliceKey)
	hosttest.Eventually(t, "the host is at the broker", func() bool {
		list, err := h.ClientAs("a-key-of-the-operator").Gateways(t.Context(), "")
		return err == nil && len(list) == 1 && list[0].Healthy
	})
	ping := func(t *testing.T) client.PartnerPing {
		t.Helper()
		got, err := h.ClientAs("a-key-of-the-operator").PingPartner(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := ping(t); !got.Active {
		t.Errorf("acme is pinged with %+v", got)
	}
	t.Run("messages", func(t *testing.T) { mqttMessages(t, p, alice) })
	t.Run("another client", func(t *testing.T) { mqttClients(t, b) })

	t.Run("the broker is killed", func(t *testing.T) {
		before := questions(20, "before")
		p.send(t, before...)
		asked := later(t, alice, "agentB@acme", "while it dies", b.Kill)
		if got := ping(t); got.Active || !strings.Contains(got.Error, "look at broker in [gateways.acp.mqtt]") {
			t.Errorf("without a broker acme is pinged with %+v", got)
		}
		b.Start(t)
		for range 2 { // who has no answer asks again: at least once
			p.send(t, before...)
		}
		for _, q := range before {
			if m := p.answer(t, q); m.Header.Type != "RESPONSE" || !strings.Contains(m.Body, q.Body) {
				t.Errorf("%s got %+v", q.Body, m)
			}
		}
		if got := <-asked; !strings.Contains(got, "of while it dies") || len(p.about("", "while it dies")) != 1 {
			t.Errorf("alice got %s", got)
		}
	})
	t.Run("the host is killed", func(t *testing.T) {
		before := questions(20, "unread")
		p.send(t, before...)
		p.answer(t, before[0])
		h.Kill()
		p.send(t, questions(5, "away")...)
		h.Start()
		for _, q := range append(before, questions(5, "away")...) {
			p.answer(t, q)
		}
	})
	p.oneAnswerEach()
	for _, q := range slices.Concat(questions(20, "before"), questions(20, "unread"), questions(5, "away")) {
		if n, err := hosttest.CountTurns(t, h.Data(), q.Header.ConversationID); n != 1 || err != nil {
			t.Errorf("%s had %d turns, %v", q.Body, n, err)
		}
	}
}

// later asks an agent, and does something meanwhile.
func later(t *testing.T, c *client.Client, agent, text string, meanwhile func()) <-chan string {
	t.Helper()
	got, begun := make(chan string, 1), make(chan struct{})
	go func() {
		close(begun)
		a, err := c.PostMessage(context.WithoutCancel(t.Context()), client.Post{Body: hosttest.RequestOf(agent, text)})
		if err != nil {
			a.Body = err.Error()
		}
		got <- a.Body
	}()
	<-begun
	meanwhile()
	return got
}

// mqttMessages are the types of messages, and what is refused.
func mqttMessages(t *testing.T, p *mqttPeer, alice *client.Client) {
	q := acptest.New("REQUEST", "agentA", "boss", "hello")
	q.Header.ID, q.Header.ConversationID = "first", "conv 1"
	p.send(t, q, q)
	if m := p.answer(t, q); m.Header.Type != "RESPONSE" || m.Header.ConversationID != "conv 1" || !strings.Contains(m.Body, "hello") {
		t.Errorf("got %+v", m)
	}
	for _, c := range []struct{ sender, text, want string }{
		{"agentA", `{"header":{"id":"bad","type":"REQUEST"}}`, "malformed"},
		{"agentA", acptest.New("REQUEST", "agentB", "boss", "x").Text(), "forbidden"},
		{"other", acptest.New("REQUEST", "other", "boss", "x").Text(), "forbidden"},
		{"agentA", acptest.New("REQUEST", "agentA", "nobody", "x").Text(), "unknown_receiver"},
	} {
		n := len(p.errors(c.want))
		if _, err := p.conn.Publish(t.Context(), "acp/v1/acme/"+c.sender+"/out", "", []byte(c.text)); err != nil {
			t.Fatal(err)
		}
		hosttest.Eventually(t, "an ERROR "+c.want, func() bool { return len(p.errors(c.want)) > n })
	}
	told := acptest.New("INFORM", "agentA", "boss", "news")
	text := strings.Replace(told.Text(), `"header":{`, `"header":{"x_ack":"requested",`, 1)
	if _, err := p.conn.Publish(t.Context(), "acp/v1/acme/agentA/out", "", []byte(text)); err != nil {
		t.Fatal(err)
	}
	if m := p.answer(t, told); m.Header.Type != "ACKNOWLEDGE" {
		t.Errorf("an INFORM got %+v", m)
	}
	if got := <-later(t, alice, "agentB@acme", "how many?", func() {}); !strings.Contains(got, "of how many?") {
		t.Errorf("alice got %s", got)
	}
}

// errors are the ERRORs with a code.
func (p *mqttPeer) errors(code string) (list []acptest.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		if m.Header.Type == "ERROR" && strings.Contains(m.Body, code) {
			list = append(list, m)
		}
	}
	return list
}

// mqttClients has another program of another version of MQTT ask.
func mqttClients(t *testing.T, b *hosttest.Mosquitto) {
	pub, sub := hosttest.SystemProgram(t, "mosquitto_pub"), hosttest.SystemProgram(t, "mosquitto_sub")
	host, port, _ := strings.Cut(b.Addr, ":")
	common := []string{"-V", "mqttv311", "-h", host, "-p", port, "-u", "acme", "-q", "1"}
	q := acptest.New("REQUEST", "agentZ", "boss", "from C")
	subscribe := []string{"-i", "acme-z", "-c", "-t", "acp/v1/acme/agentZ/in"}
	run := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, append(common, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v: %s", program, args, err, out)
		}
		return string(out)
	}
	run(sub, append(subscribe, "-E")...) // the session begins
	run(pub, "-t", "acp/v1/acme/agentZ/out", "-m", q.Text())
	if out := run(sub, append(subscribe, "-C", "1", "-W", "60")...); !strings.Contains(out, `"RESPONSE"`) || !strings.Contains(out, "from C") {
		t.Errorf("it got %s", out)
	}
}

// oneAnswerEach checks that each question has one answer, however often it came.
func (p *mqttPeer) oneAnswerEach() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	answers := map[string]string{}
	for _, m := range p.got {
		if before, has := answers[m.Header.ReplyTo]; has && m.Header.Type == "RESPONSE" && before != m.Text() {
			p.t.Errorf("a question has two answers: %s and %s", before, m.Text())
		}
		if m.Header.Type == "RESPONSE" {
			answers[m.Header.ReplyTo] = m.Text()
		}
	}
	if len(answers) < 46 {
		p.t.Errorf("%d questions have answers", len(answers))
	}
}

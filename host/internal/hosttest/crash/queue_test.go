package crash_test

import (
	"slices"
	"strings"
	"testing"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/hosttest"
)

// queueSwarm serves boss to the partner acme over a broker.
const queueSwarm = `schema = 1
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
expose = ["amp"]
[gateways.amp]
max_body = "64KiB"
BROKER
[gateways.amp.partners.acme]
ids = ["agent-*"]
may = ["ask", "tell"]
queues = true
hmac_key = "` + queueKey + `"
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

// queueBroker is a broker that is killed and started again.
type queueBroker interface {
	Kill()
	Start(t *testing.T)
	// dead counts what was set aside.
	dead(t *testing.T) int
}

// tryQueues lets a partner's agents ask ours over a broker, and ours theirs, by configuration alone.
// Who sends is shown by the signature; what is no message of a partner is set aside. When the broker
// is killed, or the host, no message is lost and none is done twice: each question has one answer and
// one turn, though its sender has sent it once.
func tryQueues(t *testing.T, h *hosttest.Process, p *queuePeer, b queueBroker) {
	alice, op := h.ClientAs(hosttest.AliceKey), h.ClientAs("a-key-of-the-operator")
	healthy := func() bool {
		list, err := op.Gateways(t.Context(), "")
		return err == nil && len(list) == 1 && list[0].Healthy
	}
	hosttest.Eventually(t, "the host is at the broker", healthy)
	t.Run("messages", func(t *testing.T) { queueMessages(t, p, b) })
	if got := <-later(t, alice, "agent-b@acme", "how many?", func() {}); !strings.Contains(got, "of how many?") {
		t.Errorf("alice got %s", got)
	}
	t.Run("the broker is killed", func(t *testing.T) {
		before := ampQuestions(20, "before")
		p.send(t, before...)
		asked := later(t, alice, "agent-b@acme", "while it dies", b.Kill)
		hosttest.Eventually(t, "the host misses the broker", func() bool { return !healthy() })
		b.Start(t)
		for _, q := range before {
			if m := p.answer(t, q); m.Message.Type != "response" {
				t.Errorf("%s got %s", q.Message.ID, m.Text())
			}
		}
		if got := <-asked; !strings.Contains(got, "of while it dies") || len(p.about("", "while it dies")) != 1 {
			t.Errorf("alice got %s", got)
		}
	})
	t.Run("the host is killed", func(t *testing.T) {
		before, away := ampQuestions(20, "unread"), ampQuestions(5, "away")
		p.send(t, before...)
		p.answer(t, before[0])
		h.Kill()
		p.send(t, away...)
		h.Start()
		for _, q := range append(before, away...) {
			p.answer(t, q)
		}
	})
	for _, q := range slices.Concat(ampQuestions(20, "before"), ampQuestions(20, "unread"), ampQuestions(5, "away")) {
		if n, err := hosttest.CountTurns(t, h.Data(), q.Message.ID); n != 1 || err != nil {
			t.Errorf("%s had %d turns, %v", q.Message.ID, n, err)
		}
	}
}

// queueMessages are a question and its repeat, what the registry answers, what is refused, and what
// is set aside.
func queueMessages(t *testing.T, p *queuePeer, b queueBroker) {
	q := amptest.Mail("agent-a", "boss@hive", "hello")
	q.Message.ID = "first"
	p.send(t, q, q)
	if m := p.answer(t, q); m.Message.Type != "response" || !strings.Contains(m.Text(), "hello") {
		t.Errorf("got %s", m.Text())
	}
	discovery := amptest.New("request", "agent-a", "registry", amptest.Object{"query": amptest.Object{}})
	discovery.Message.Destination.Capability = "discovery"
	p.send(t, discovery)
	if m := p.answer(t, discovery); !strings.Contains(m.Text(), `"boss@hive"`) {
		t.Errorf("discovery got %s", m.Text())
	}
	unknown := amptest.Request("agent-a", "boss@hive", "translation", amptest.Object{})
	p.send(t, unknown)
	if code, _, _ := p.answer(t, unknown).Fault(); code != "CAPABILITY_NOT_FOUND" {
		t.Errorf("an unknown capability got %s", code)
	}
	forged, stranger := amptest.Mail("agent-a", "boss@hive", "forged"), amptest.Mail("mallory", "boss@hive", "x")
	for _, text := range [][]byte{
		[]byte("nonsense"), []byte(forged.Text()), signedText(t, stranger),
		[]byte(strings.Replace(string(signedText(t, forged)), "forged", "change", 1)),
		signedText(t, amptest.Mail("agent-a", "boss@hive", strings.Repeat("x", 64<<10))),
	} {
		waiting := b.dead(t)
		if err := p.publishTo(t.Context(), "request", "boss@hive", text); err != nil {
			t.Fatal(err)
		}
		hosttest.Eventually(t, "it is set aside", func() bool { return b.dead(t) == waiting+1 })
	}
}

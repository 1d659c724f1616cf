package amp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/broker"
	"skep/host/internal/gateway/amp/kafka"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/sockets"
)

// TestQueueVerdicts (M-073, M-075, M-095): a message from the broker is taken when the host has stored
// it, kept while it cannot, and set aside if no partner with queues has signed it within the time for
// which repeats are known.
func TestQueueVerdicts(t *testing.T) {
	t.Parallel()
	key := []byte("a key that is shared")
	for name, c := range map[string]struct {
		sender string
		key    []byte
		age    time.Duration
		fails  error
		isGone bool // the connection ends
		want   broker.Verdict
		asked  bool
	}{
		"stored":                    {sender: "mill-1", key: key, want: broker.Taken, asked: true},
		"hours old":                 {sender: "mill-1", key: key, age: 20 * time.Hour, want: broker.Taken, asked: true},
		"stored the second time":    {sender: "mill-1", key: key, fails: errors.New("the disk is full"), want: broker.Taken, asked: true},
		"another host's at first":   {sender: "mill-1", key: key, fails: gateway.ErrElsewhere, want: broker.Taken, asked: true},
		"the connection ends first": {sender: "mill-1", key: key, fails: errors.New("the disk is full"), isGone: true, want: broker.Kept},
		"older than repeats are":    {sender: "mill-1", key: key, age: 25 * time.Hour, want: broker.SetAside},
		"from the future":           {sender: "mill-1", key: key, age: -10 * time.Minute, want: broker.SetAside},
		"another key":               {sender: "mill-1", key: []byte("a key that is not shared"), want: broker.SetAside},
		"another's agent":           {sender: "shop-1", key: key, want: broker.SetAside},
		"a partner without queues":  {sender: "plain-1", key: key, want: broker.SetAside},
	} {
		rt := gatewaytest.New()
		t.Cleanup(rt.Close)
		partners := []gateway.Partner{
			{Name: "mill", Tenant: "default", IDs: []string{"mill-*"}, HMACKey: key, May: gateway.Rights{gateway.MayAsk}, Options: map[string]any{queuesOption: true}},
			{Name: "plain", Tenant: "default", IDs: []string{"plain-*"}, HMACKey: key, May: gateway.Rights{gateway.MayAsk}},
		}
		for _, p := range partners {
			rt.AddPartner(p)
		}
		asked := make(chan gateway.Ask, 10)
		rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "calc"}, func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
			asked <- turn.Ask
			return gateway.Answer{Body: "done"}
		})
		g := New(Options{Runtime: rt, Partners: func() []gateway.Partner { return partners }, RabbitMQ: &RabbitMQ{Exchange: "amp", Swarm: "hive"}})
		ctx, end := context.WithCancel(t.Context())
		if c.isGone {
			end()
		}
		if c.fails != nil {
			rt.FailNext("Ask", c.fails)
		}
		got := make(chan broker.Verdict, 2)
		g.queue.take(ctx, broker.Message{Payload: queuedText(t, c.sender, c.key, time.Now().Add(-c.age))}, func(v broker.Verdict) { got <- v })
		if v := <-got; v != c.want || len(got) != 0 {
			t.Errorf("%s: the verdict is %v, want %v", name, v, c.want)
		}
		if c.asked {
			if a := <-asked; !a.Reply || a.Body != "hello" {
				t.Errorf("%s: asked %+v", name, a)
			}
		} else if len(asked) != 0 {
			t.Errorf("%s: an agent is asked", name)
		}
		end()
	}
}

// publishes is a broker that takes what is published, but for errors.
type publishes struct {
	messageBroker
	err error
}

func (p publishes) Publish(context.Context, broker.Message) error { return p.err }

// TestAnswerCannotBeSent (M-095, M-096): a message whose answer the broker can never take is taken: it
// would hold up the others for ever.
func TestAnswerCannotBeSent(t *testing.T) {
	t.Parallel()
	key := []byte("a key that is shared")
	partners := []gateway.Partner{{Name: "mill", Tenant: "default", IDs: []string{"mill-*"}, HMACKey: key, Options: map[string]any{queuesOption: true}}}
	for name, c := range map[string]struct {
		sender string
		err    error
	}{
		"an id without a routing key": {sender: "mill-" + strings.Repeat(".", 100)},
		"an answer that is too large": {sender: "mill-1", err: kafka.ErrTooLarge},
		"an answer that nobody reads": {sender: "mill-1", err: broker.ErrNoQueue},
		"a queue that is full":        {sender: "mill-1", err: broker.ErrNotStored},
	} {
		rt := gatewaytest.New()
		t.Cleanup(rt.Close)
		rt.AddPartner(partners[0])
		q := New(Options{Runtime: rt, Partners: func() []gateway.Partner { return partners }, RabbitMQ: &RabbitMQ{Exchange: "amp", Swarm: "hive"}}).queue
		q.conn = publishes{err: c.err}
		got := make(chan broker.Verdict, 1)
		q.take(t.Context(), broker.Message{Payload: queuedText(t, c.sender, key, time.Now())}, func(v broker.Verdict) { got <- v })
		if v := <-got; v != broker.Taken {
			t.Errorf("%s: the verdict is %v", name, v)
		}
		q.running.Wait()
	}
}

// TestProofLookupFails (M-075, M-095): whether an old message is a repeat the store says; while it cannot,
// the message is not set aside.
func TestProofLookupFails(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	key := []byte("a key that is shared")
	partners := []gateway.Partner{{Name: "mill", Tenant: "default", IDs: []string{"mill-*"}, HMACKey: key, May: gateway.Rights{gateway.MayAsk}, Options: map[string]any{queuesOption: true}}}
	rt.AddPartner(partners[0])
	rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "calc"}, gatewaytest.Echo)
	q := New(Options{Runtime: rt, Partners: func() []gateway.Partner { return partners }, RabbitMQ: &RabbitMQ{Exchange: "amp", Swarm: "hive"}}).queue
	q.conn = publishes{}
	for _, age := range []time.Duration{0, 25 * time.Hour} {
		if age > 0 {
			rt.FailNext("Find", errors.New("the disk is away"))
		}
		got := make(chan broker.Verdict, 1)
		q.take(t.Context(), broker.Message{Payload: queuedText(t, "mill-1", key, time.Now().Add(-age))}, func(v broker.Verdict) { got <- v })
		if v := <-got; v != broker.Taken {
			t.Errorf("%s old: the verdict is %v", age, v)
		}
	}
	q.running.Wait()
}

// TestAnswerAtItsTurn (M-095, M-096): an answer whose question has ended when its turn comes waits for
// the question to be sent again, and is not lost.
func TestAnswerAtItsTurn(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	key := []byte("a key that is shared")
	partners := []gateway.Partner{{Name: "mill", Tenant: "default", IDs: []string{"mill-*"}, HMACKey: key, May: gateway.Rights{gateway.MayAsk}, Options: map[string]any{queuesOption: true}}}
	rt.AddPartner(partners[0])
	q := New(Options{Runtime: rt, Partners: func() []gateway.Partner { return partners }, RabbitMQ: &RabbitMQ{Exchange: "amp", Swarm: "hive"}}).queue
	c := partners[0].Caller()
	ask := func() (*question, func()) {
		t.Helper()
		asked, end, err := q.g.waiting.beginRelay(c, "q-1", "mill-1")
		if err != nil {
			t.Fatal(err)
		}
		return asked, end
	}
	blocked := make(chan struct{})
	q.inOrder(sender{c.Principal.Tenant, c.Realm, "mill-1"}, func() { <-blocked })
	_, end := ask()
	got := make(chan broker.Verdict, 1)
	q.take(t.Context(), broker.Message{Payload: answerText(t, "mill-1", "q-1", key)}, func(v broker.Verdict) { got <- v })
	end()
	turn := make(chan struct{})
	q.inOrder(sender{c.Principal.Tenant, c.Realm, "mill-1"}, func() { close(turn) })
	close(blocked)
	<-turn // the answer has had its turn
	asked, end := ask()
	defer end()
	if v := <-got; v != broker.Taken {
		t.Errorf("the verdict is %v", v)
	}
	select {
	case <-asked.arrived:
	default:
		t.Error("the answer is lost")
	}
	q.running.Wait()
}

// answerText is an answer, signed.
func answerText(t *testing.T, sender, to string, key []byte) []byte {
	t.Helper()
	m := message.Message{
		ID: "a-1", Type: message.Response, Timestamp: timestamp(time.Now()), Source: message.Source{Agent: sender}, Destination: message.Destination{Agent: "calc@hive"},
		Headers: message.Headers{Correlation: to}, Payload: json.RawMessage(`{"status":"success","result":{"text":"done"}}`),
	}
	if err := message.Sign(&m, key); err != nil {
		t.Fatal(err)
	}
	text, err := message.Write(message.AMP, m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestTakenInOrder (M-096, V-M34): messages of a sender are taken one after the other, as they came, and
// and messages of another sender meanwhile. While the host can take none, a bounded number waits in it.
func TestTakenInOrder(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	q := New(Options{Runtime: rt, RabbitMQ: &RabbitMQ{Exchange: "amp", Swarm: "hive"}}).queue
	blocked, came := make(chan struct{}), make(chan string, 2*maxTaking)
	q.inOrder(sender{agent: "a"}, func() { <-blocked; came <- "a 0" })
	for n := 1; n < maxTaking-1; n++ { // a place is left
		q.inOrder(sender{agent: "a"}, func() { came <- fmt.Sprint("a ", n) })
	}
	for range maxTaking {
		q.inOrder(sender{agent: "b"}, func() { came <- "b" })
		if got := <-came; got != "b" {
			t.Fatalf("before the first of a %s was taken", got)
		}
	}
	for len(q.taking) >= maxTaking {
		runtime.Gosched() // the last of b gives its place back
	}
	q.inOrder(sender{agent: "a"}, func() { came <- "last" })
	select {
	case q.taking <- struct{}{}:
		t.Error("there is a place for one more")
	default:
	}
	close(blocked)
	for n := range maxTaking - 1 {
		if got := <-came; got != fmt.Sprint("a ", n) {
			t.Errorf("the %dth of a is %s", n, got)
		}
	}
	q.running.Wait()
	if len(q.last) != 0 || len(q.taking) != 0 {
		t.Errorf("%d senders and %d places are kept", len(q.last), len(q.taking))
	}
}

// TestOwnEvent (M-095, M-096): an event of ours to all, which comes back, is not set aside and
// reaches no agent.
func TestOwnEvent(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	key := []byte("a key that is shared")
	partners := []gateway.Partner{{Name: "mill", Tenant: "default", IDs: []string{"mill-*"}, HMACKey: key, May: gateway.Rights{gateway.MayTell}, Options: map[string]any{queuesOption: true}}}
	for name, o := range map[string]Options{"RabbitMQ": {RabbitMQ: &RabbitMQ{Exchange: "amp", Swarm: "hive"}}, "Kafka": {Kafka: &Kafka{Prefix: "amp", Swarm: "hive"}}} {
		o.Runtime, o.Partners = rt, func() []gateway.Partner { return partners }
		for sender, want := range map[string]broker.Verdict{"calc@hive": broker.Taken, "calc@hive-2": broker.SetAside} {
			New(o).queue.take(t.Context(), broker.Message{Payload: signedText(t, message.Event, sender, key, time.Now())}, func(v broker.Verdict) {
				if v != want {
					t.Errorf("%s: the verdict on an event of %s is %v, want %v", name, sender, v, want)
				}
			})
		}
	}
}

// TestWants (M-096): of topics that all read, the host takes what is for agents that partners with
// queues see, what is for others of its swarm, whose senders get an error, what is for all, and answers to its
// agents, after a start, too.
func TestWants(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "calc"}, nil)
	partners := []gateway.Partner{{Name: "mill", Tenant: "default", HMACKey: []byte("a key that is shared"), Options: map[string]any{queuesOption: true}}}
	for _, p := range partners {
		rt.AddPartner(p)
	}
	q := New(Options{Runtime: rt, Partners: func() []gateway.Partner { return partners }, Kafka: &Kafka{Prefix: "amp", Swarm: "hive"}}).queue
	for what, want := range map[string]bool{
		"request calc@hive": true, "event calc@hive": true, "event ": true, "request registry": true, "response calc@hive": true, "error gone@hive": true,
		"request context": true, "event registry": false, "request ": false, "request calc": false, "request gone@hive": true, "event gone@hive": true, "request @hive": true, "request calc@hive-2": false, "response calc@hive-2": false, "response ": false, "event mill-1": false,
	} {
		kind, agent, _ := strings.Cut(what, " ")
		if got := q.wants(message.Type(kind), agent); got != want {
			t.Errorf("%q: %v, want %v", what, got, want)
		}
	}
}

// queuedText is a request for calc, signed.
func queuedText(t *testing.T, sender string, key []byte, at time.Time) []byte {
	t.Helper()
	return signedText(t, message.Request, sender, key, at)
}

// signedText is a message for calc, signed.
func signedText(t *testing.T, kind message.Type, sender string, key []byte, at time.Time) []byte {
	t.Helper()
	m := message.Message{
		ID: "m-1", Type: kind, Timestamp: timestamp(at), Source: message.Source{Agent: sender}, Destination: message.Destination{Agent: "calc@hive"},
		Payload: json.RawMessage(`{"capability":"mail.message","parameters":{"body":"hello"}}`),
	}
	if err := message.Sign(&m, key); err != nil {
		t.Fatal(err)
	}
	text, err := message.Write(message.AMP, m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestKeys (M-095): each id of an agent has one routing key, of two words.
func TestKeys(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"": "request", "calc@hive": "request.calc@hive", "a.b": "request.a%2Eb", "*": "request.%2A", "#": "request.%23", "a%2Eb": "request.a%252Eb", "é b": "request.%C3%A9%20b",
	} {
		if got := keyOf(message.Request, id); got != want || id != "" && strings.Count(got, ".") != 1 {
			t.Errorf("%q has the key %q, want %q", id, got, want)
		}
	}
}

// refusing is a connection whose broker refuses username and password.
type refusing struct{ messageBroker }

func (refusing) State() error { return fmt.Errorf("%w: 403", broker.ErrCredential) }

// TestRefusedCredentialIsNamed (M-095, M-096): health says which lines of which table to change.
func TestRefusedCredentialIsNamed(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"rabbitmq", "kafka"} {
		g := &Gateway{queue: &queue{conn: refusing{}, table: table}, sockets: sockets.New[*socket](Name, 1)}
		if got, want := g.Health(), "set username and password in [gateways.amp."+table+"]"; got.OK || !strings.Contains(got.Detail, want) {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

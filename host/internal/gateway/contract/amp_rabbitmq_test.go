package contract_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"skep/host/internal/gateway/contract"
	"skep/host/internal/hosttest"
)

// TestAMPRabbitMQ (M-020, M-091, M-095, M-098, G-042): the contract of gateways, held by AMP over a real
// RabbitMQ in both directions.
func TestAMPRabbitMQ(t *testing.T) {
	t.Parallel()
	b := hosttest.StartRabbitMQ(t)
	var places atomic.Int32
	contract.Run(t, ampBrokerProtocol(func(t testing.TB) (string, *ampMesh) {
		exchange := fmt.Sprint("mesh", places.Add(1))
		mesh := newAMPMesh(t)
		mesh.at = openRabbitMQ(t, b.Addr, exchange, mesh)
		return fmt.Sprintf("[gateways.amp.rabbitmq]\nbroker = \"amqp://%s\"\nexchange = %q\nusername = \"guest\"\npassword = \"guest\"\n", b.Addr, exchange), mesh
	}, map[string]string{
		"10/partner": "who may publish at a broker learns from it which agents have a queue",
		"10/work":    "the broker returns a message for an agent without a queue, and the host does nothing",
	}))
}

// rabbitMQ is a connection of partners. Its one queue is bound to the keys of their agents.
type rabbitMQ struct {
	exchange, queue string
	channel         *amqp.Channel
	returned        chan amqp.Return
	publishing      sync.Mutex
}

func openRabbitMQ(t testing.TB, addr, exchange string, mesh *ampMesh) *rabbitMQ {
	t.Helper()
	conn, err := amqp.Dial("amqp://guest:guest@" + addr)
	if err != nil {
		t.Fatal(err)
	}
	r := &rabbitMQ{exchange: exchange}
	aside := r.declare(t, conn)
	own, err := r.channel.Consume(r.queue, "", true, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for d := range own {
			mesh.receive(d.Body)
		}
	})
	reading.Go(func() {
		for d := range aside {
			mark, _ := d.Headers[markField].(string)
			mesh.deliver(mark, ampHeard{isAside: true})
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		reading.Wait()
	})
	return r
}

// declare makes the partners' queue, bound to the keys of all answers, and what the host makes as well: the
// exchange, and the queue of messages that are set aside, which it reads.
func (r *rabbitMQ) declare(t testing.TB, conn *amqp.Connection) (aside <-chan amqp.Delivery) {
	t.Helper()
	ch, err := conn.Channel()
	steps := []func() error{
		func() error {
			return ch.ExchangeDeclare(r.exchange, amqp.ExchangeTopic, true, false, false, false, nil)
		},
		func() error {
			q, err := ch.QueueDeclare("", false, true, true, false, nil)
			r.queue = q.Name
			return err
		},
		func() error { return ch.QueueBind(r.queue, "response.*", r.exchange, false, nil) },
		func() error { return ch.QueueBind(r.queue, "error.*", r.exchange, false, nil) },
		func() error {
			return ch.ExchangeDeclare(r.exchange+".dlx", amqp.ExchangeFanout, true, false, false, false, nil)
		},
		func() error {
			_, err := ch.QueueDeclare(r.exchange+".dead", true, false, false, false, nil)
			return err
		},
		func() error { return ch.QueueBind(r.exchange+".dead", "", r.exchange+".dlx", false, nil) },
		func() error {
			aside, err = ch.Consume(r.exchange+".dead", "", true, true, false, false, nil)
			return err
		},
		func() error { return ch.Confirm(false) },
	}
	for _, step := range steps {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	r.channel, r.returned = ch, ch.NotifyReturn(make(chan amqp.Return, 1))
	return aside
}

// rabbitKey is the routing key of messages of a type for an agent.
func rabbitKey(kind, agent string) string {
	var key strings.Builder
	key.WriteString(kind + ".")
	for _, b := range []byte(agent) {
		if b <= ' ' || b >= 0x7f || strings.ContainsRune(".*#%", rune(b)) {
			fmt.Fprintf(&key, "%%%02X", b)
			continue
		}
		key.WriteByte(b)
	}
	return key.String()
}

func (r *rabbitMQ) publish(ctx context.Context, m ampRecord) error {
	key := rabbitKey(m.kind, m.agent)
	if len(key) > 255 {
		return errNoKey
	}
	r.publishing.Lock() // a message is returned before it is confirmed
	defer r.publishing.Unlock()
	confirmed, err := r.channel.PublishWithDeferredConfirm(r.exchange, key, true, false, amqp.Publishing{
		ContentType: "application/json", Type: m.kind, Headers: amqp.Table{markField: m.mark}, Body: m.text,
	})
	if err != nil {
		return err
	}
	if stored, err := confirmed.WaitContext(ctx); err != nil || !stored {
		return fmt.Errorf("not stored: %w", err)
	}
	select {
	case <-r.returned:
		return errNoRoute
	default:
		return nil
	}
}

func (r *rabbitMQ) bind(agents []string) (err error) {
	for _, key := range r.keysOf(agents) {
		if err == nil {
			err = r.channel.QueueBind(r.queue, key, r.exchange, false, nil)
		}
	}
	return err
}

func (r *rabbitMQ) unbind(agents []string) (err error) {
	for _, key := range r.keysOf(agents) {
		if err == nil {
			err = r.channel.QueueUnbind(r.queue, key, r.exchange, nil)
		}
	}
	return err
}

func (r *rabbitMQ) keysOf(agents []string) (list []string) {
	for _, agent := range agents {
		list = append(list, rabbitKey("request", agent), rabbitKey("event", agent))
	}
	return list
}

// settle asks another question: messages of one sender are taken in order.
func (r *rabbitMQ) settle(ctx context.Context, c ampQueueClient) error {
	return c.mesh.hello(ctx, senderOf(c.Token))
}

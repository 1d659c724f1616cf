package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"skep/host/internal/gateway/amp/broker"
	"skep/host/internal/gateway/amp/kafka"
	amp "skep/host/internal/gateway/amp/message"
	"skep/host/internal/hosttest"
)

// errNoProgram is met where this machine has no broker.
var errNoProgram = errors.New("it is not measured")

// maxQueued bounds a message at a broker, in bytes, and brokerWait the time for an answer and for a
// connection.
const (
	maxQueued  = 1 << 20
	brokerWait = time.Minute
)

// ampBroker is a broker of this machine.
type ampBroker struct {
	name string
	// table is the broker's in swarm.toml.
	table string
	// dial returns a connection with a queue, or a group, of a name, which gets the messages with the
	// keys TYPE.ID.
	dial func(name string, keys []string, take func(m broker.Message)) brokerConn
	stop func()
}

// brokerConn is a connection to a broker.
type brokerConn interface {
	Run(ctx context.Context)
	State() error
	Publish(ctx context.Context, m broker.Message) error
}

// openRabbitMQ starts a real broker, whose queues and messages are durable.
func openRabbitMQ() (*ampBroker, error) {
	if _, err := exec.LookPath("rabbitmq-server"); err != nil {
		return nil, fmt.Errorf("AMP over RabbitMQ: %w: %w", errNoProgram, err)
	}
	dir, remove, err := scratch()
	if err != nil {
		return nil, err
	}
	b, err := hosttest.OpenRabbitMQ(dir)
	if err != nil {
		remove()
		return nil, err
	}
	url := "amqp://" + b.Addr
	return &ampBroker{
		name: "RabbitMQ", table: fmt.Sprintf("[gateways.amp.rabbitmq]\nbroker = %q\nusername = \"guest\"\npassword = \"guest\"", url),
		dial: func(name string, keys []string, take func(m broker.Message)) brokerConn {
			return broker.New(broker.Options{
				URL: url, Username: "guest", Password: "guest", Exchange: "amp", Queue: "amp." + name, MaxMessage: maxQueued, Log: slog.New(slog.DiscardHandler),
				Keys: func() []string { return keys },
				Take: func(_ context.Context, m broker.Message, verdict func(broker.Verdict)) {
					verdict(broker.Taken)
					take(m)
				},
			})
		},
		stop: func() { b.Kill(); remove() },
	}, nil
}

// openKafka starts the broker of the library's own tests in this process: the distribution has no other.
func openKafka() (*ampBroker, error) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "amp.request", "amp.response", "amp.event", "amp.error", "amp.dlq"))
	if err != nil {
		return nil, err
	}
	return &ampBroker{
		name: "Kafka, the library's broker in this process", table: fmt.Sprintf("[gateways.amp.kafka]\nbrokers = [%q]\nplain = true", c.ListenAddrs()[0]),
		dial: func(name string, keys []string, take func(m broker.Message)) brokerConn {
			wanted := map[string]bool{}
			for _, key := range keys {
				wanted[key] = true
			}
			return kafka.New(kafka.Options{
				Brokers: c.ListenAddrs(), Prefix: "amp", Group: "amp." + name, Keep: time.Hour, MaxMessage: maxQueued, Log: slog.New(slog.DiscardHandler),
				Wants: func(kind, agent string) bool { return wanted[kind+"."+agent] },
				Take: func(_ context.Context, m broker.Message, verdict func(broker.Verdict)) {
					verdict(broker.Taken)
					take(m)
				},
			})
		},
		stop: c.Close,
	}, nil
}

// brokerReader waits for answers at a broker.
type brokerReader struct {
	conn brokerConn
	stop func()

	mu      sync.Mutex
	waiting map[string]chan []byte // by the id of the question
}

// open returns what reads the answers to questions of a partner's agents, when it is connected.
func (at *ampBroker) open(name, partner string, agents int) (*brokerReader, error) {
	r := &brokerReader{waiting: map[string]chan []byte{}}
	var keys []string
	for n := range agents {
		for _, kind := range []amp.Type{amp.Response, amp.Error} {
			keys = append(keys, fmt.Sprintf("%s.%s-%d", kind, partner, n))
		}
	}
	r.conn = at.dial(name, keys, func(m broker.Message) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if c := r.waiting[m.Correlation]; c != nil {
			delete(r.waiting, m.Correlation)
			c <- m.Payload
		}
	})
	var err error
	r.stop, err = runBrokerConn(r.conn)
	return r, err
}

// runBrokerConn returns when a connection is made.
func runBrokerConn(conn brokerConn) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn.Run(ctx)
	}()
	stop = func() { cancel(); <-done }
	for last := time.Now().Add(brokerWait); conn.State() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(last) {
			stop()
			return nil, fmt.Errorf("the broker is away: %w", conn.State())
		}
	}
	return stop, nil
}

// ask publishes a question and waits for its answer.
func (r *brokerReader) ask(m broker.Message, want string) error {
	came := make(chan []byte, 1)
	r.mu.Lock()
	r.waiting[m.ID] = came
	r.mu.Unlock()
	if err := r.publish(m); err != nil {
		return err
	}
	select {
	case text := <-came:
		if !strings.Contains(string(text), want) {
			return fmt.Errorf("it is answered by %.1000s", text)
		}
		return nil
	case <-time.After(brokerWait):
		return fmt.Errorf("%s has no answer", m.ID)
	}
}

// publish waits until the host has its queue: then the broker has one for the key.
func (r *brokerReader) publish(m broker.Message) (err error) {
	for last := time.Now().Add(brokerWait); time.Now().Before(last); time.Sleep(time.Millisecond) {
		if err = r.conn.Publish(context.Background(), m); !errors.Is(err, broker.ErrNoQueue) {
			return err
		}
	}
	return err
}

// asking is a subject that asks by messages at the broker.
func (r *brokerReader) asking(a *ampAsker, clients int) subject {
	return subject{"AMP over a broker", func(span time.Duration) (int, time.Duration, error) {
		return parallel(clients, span, func(n int) error {
			id, text, err := a.newRequest(n)
			if err != nil {
				return err
			}
			return r.ask(broker.Message{Key: "request.boss@hive", Type: string(amp.Request), Agent: "boss@hive", ID: id, Payload: text}, trivialAnswer)
		})
	}}
}

// bare is a subject that asks a program which answers at once with what it was asked, over the same
// connections.
func (at *ampBroker) bare(clients int) subject {
	return subject{"a broker alone", func(span time.Duration) (int, time.Duration, error) {
		r, err := at.open("bare-asker", "bare", clients)
		if err != nil {
			return 0, 0, err
		}
		defer r.stop()
		var answering brokerConn
		var answers sync.WaitGroup
		defer answers.Wait()
		answering = at.dial("bare-answerer", []string{"request.bare"}, func(m broker.Message) {
			answers.Go(func() {
				to := "bare-" + m.Correlation
				_ = answering.Publish(context.Background(), broker.Message{Key: "response." + to, Type: string(amp.Response), Agent: to, ID: m.ID + " answer", Correlation: m.ID, Payload: m.Payload})
			})
		})
		stop, err := runBrokerConn(answering)
		if err != nil {
			return 0, 0, err
		}
		defer stop()
		a := &ampAsker{partner: "bare", key: []byte(millKey)}
		return parallel(clients, span, func(n int) error {
			id, text, err := a.newRequest(n)
			if err != nil {
				return err
			}
			return r.ask(broker.Message{Key: "request.bare", Type: string(amp.Request), Agent: "bare", ID: id, Correlation: fmt.Sprint(n), Payload: text}, "hello")
		})
	}}
}

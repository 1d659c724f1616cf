package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// publishAll publishes a message for each id at the same time, whose text is its id, and returns
// the outcome of each, when it is there. The broker has all of them by then, by delivery tag from 1 on.
func publishAll(t *testing.T, c *Conn, p *fakeBroker, ids ...string) (tags map[string]uint64, outcome map[string]chan error) {
	t.Helper()
	tags, outcome = map[string]uint64{}, map[string]chan error{}
	for _, id := range ids {
		got := make(chan error, 1)
		outcome[id] = got
		go func() { got <- c.Publish(t.Context(), Message{Key: "request.reader", ID: id, Payload: []byte(id)}) }()
	}
	for n := range ids {
		tags[<-p.came] = uint64(n + 1)
	}
	return tags, outcome
}

// TestPublishedIsConfirmed (M-095): each message has the broker's own verdict on it, in whatever order
// those come.
func TestPublishedIsConfirmed(t *testing.T) {
	t.Parallel()
	c, brokers := startConn(t)
	p := <-brokers
	c.await(true)
	var ids []string
	for _, verdict := range []string{"stored", "refused", "returned"} {
		for n := range maxPublishing / 3 {
			ids = append(ids, fmt.Sprint(verdict, n))
		}
	}
	tags, outcome := publishAll(t, c, p, ids...)
	for id, tag := range tags { // in any order
		switch {
		case strings.HasPrefix(id, "returned"):
			p.sendReturn(t, "request.reader", id)
			p.sendVerdict(t, ackMethod, tag, 0)
		case strings.HasPrefix(id, "refused"):
			p.sendVerdict(t, nackMethod, tag, 0)
		default:
			p.sendVerdict(t, ackMethod, tag, 0)
		}
	}
	for id, got := range outcome {
		err := <-got
		if (err == nil) != strings.HasPrefix(id, "stored") || errors.Is(err, ErrNoQueue) != strings.HasPrefix(id, "returned") || errors.Is(err, ErrNotStored) != strings.HasPrefix(id, "refused") {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestConnectionEndsUnconfirmed (M-095): as the connection ends, what the broker has confirmed is
// published, and nothing else is; more messages than may be unconfirmed end as well. The next
// connection publishes.
func TestConnectionEndsUnconfirmed(t *testing.T) {
	t.Parallel()
	c, brokers := startConn(t)
	p := <-brokers
	c.await(true)
	var ids []string
	for n := range maxPublishing {
		ids = append(ids, fmt.Sprint("m-", n))
	}
	tags, outcome := publishAll(t, c, p, ids...)
	waiting := make(chan error, maxPublishing)
	for range maxPublishing {
		go func() {
			waiting <- c.Publish(t.Context(), Message{Key: "request.reader", ID: "waits", Payload: []byte("waits")})
		}()
	}
	p.sendVerdict(t, ackMethod, tags["m-7"], 0)
	if err := <-outcome["m-7"]; err != nil {
		t.Errorf("m-7 is confirmed: %v", err)
	}
	<-p.came // one that waits has the place
	p.sendReturn(t, "request.reader", "m-8")
	_ = p.conn.Close()
	go storeNext(t, <-brokers)
	for id, got := range outcome {
		if id == "m-7" {
			continue
		}
		if err := <-got; err == nil {
			t.Errorf("%s counts as published", id)
		}
	}
	for range maxPublishing {
		if err := <-waiting; err == nil {
			t.Error("a message that the broker has not confirmed counts as published")
		}
	}
	c.await(true)
	if err := c.Publish(t.Context(), Message{Key: "request.reader", ID: "next", Payload: []byte("next")}); err != nil {
		t.Errorf("the next connection: %v", err)
	}
}

// storeNext confirms that the message next is stored, and that others are not.
func storeNext(t *testing.T, p *fakeBroker) {
	for tag := uint64(1); ; tag++ {
		select {
		case text := <-p.came:
			if text == "next" {
				p.sendVerdict(t, ackMethod, tag, 0)
				return
			}
			p.sendVerdict(t, nackMethod, tag, 0)
		case <-t.Context().Done():
			return
		}
	}
}

// TestLongIDs (M-095): a message whose ids are longer than AMQP has room for is published, and the
// connection goes on.
func TestLongIDs(t *testing.T) {
	t.Parallel()
	c, brokers := startConn(t)
	p := <-brokers
	c.await(true)
	long := strings.Repeat("x", maxShort+1)
	for n, m := range []Message{{ID: long}, {ID: "m-1", Correlation: long}} {
		m.Key, m.Payload = "request.reader", []byte("text")
		got := make(chan error, 1)
		go func() { got <- c.Publish(t.Context(), m) }()
		select {
		case <-p.came:
			p.sendVerdict(t, ackMethod, uint64(n+1), 0)
			if err := <-got; err != nil {
				t.Errorf("message %d: %v", n, err)
			}
		case err := <-got:
			t.Fatalf("message %d: %v", n, err)
		}
	}
}

// TestCredentialRefused (M-095): a broker is asked to say when it refuses username and password, and only one that
// does has refused them: one that is lost at that moment has not.
func TestCredentialRefused(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]bool{"refused": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			asked := make(chan bool, 1)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer func() { _ = conn.Close() }()
				p := &fakeBroker{conn: conn}
				p.refuse = func(arguments []byte) error {
					asked <- bytes.Contains(arguments, []byte(refusalCapability+"t\x01"))
					if !says {
						return io.EOF
					}
					text := "ACCESS_REFUSED - Login was refused"
					return p.sendMethod(0, closeMethod, append(append([]byte{403 >> 8, 403 & 0xff, byte(len(text))}, text...), 0, 0, 0, 0)...)
				}
				_ = p.serve()
			}()
			_, err = New(Options{URL: "amqp://" + l.Addr().String(), Queue: "amp.hive", MaxMessage: 1 << 10}).open(t.Context())
			if err == nil || errors.Is(err, ErrCredential) != says || strings.Contains(err.Error(), "ACCESS_REFUSED") != says {
				t.Errorf("a broker that refuses: %v", err)
			}
			select {
			case capable := <-asked:
				if !capable {
					t.Error("the broker is not asked to say when it refuses username and password")
				}
			default:
				t.Error("the broker is shown no username and password")
			}
		})
	}
	for err, want := range map[error]string{
		amqp.ErrVhost:       "it refuses the connection: ",
		amqp.ErrSASL:        "it refuses the connection: ",
		amqp.ErrCredentials: "before it has answered username and password",
	} {
		if got := openError(err); errors.Is(got, ErrCredential) || !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v, want %q", err, got, want)
		}
	}
}

// A broker that takes the connection and says nothing does not hold up the end of the host.
func TestSilentBroker(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	taken := make(chan net.Conn, 1)
	go func() {
		conn, err := silent.Accept()
		if err == nil {
			taken <- conn
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan error, 1)
	go func() {
		_, err := New(Options{URL: "amqp://" + silent.Addr().String() + "/", MaxMessage: 1 << 20}).open(ctx)
		opened <- err
	}()
	conn := <-taken
	defer func() { _ = conn.Close() }()
	cancel()
	if err := <-opened; err == nil {
		t.Error("a broker that says nothing has let the host in")
	}
}

package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ErrCredential is wrapped by the state of a connection to a broker that refuses username and password.
var ErrCredential = errors.New("it refuses username and password")

// Errors of [Conn.Publish].
var (
	// ErrAway means that nothing was sent: there is no connection.
	ErrAway = errors.New("the broker is not connected")
	// ErrNoQueue means that no queue gets messages with the key: the broker has returned it.
	ErrNoQueue = errors.New("no queue at the broker gets messages with this key")
	// ErrNotStored means that the broker refuses to store the message, as where the queue is full.
	ErrNotStored = errors.New("the broker has not stored a message: its queue may be full")
)

// Publish sends a message and returns when the broker has stored it in a queue. It does not end
// with ctx: what was sent is in doubt until then.
func (c *Conn) Publish(ctx context.Context, m Message) error {
	c.mu.Lock()
	l := c.live
	c.mu.Unlock()
	if l == nil {
		return ErrAway
	}
	return l.publish(ctx, c.opt.Exchange, m)
}

func (l *openConn) publish(ctx context.Context, exchange string, m Message) error {
	m.ID, m.Correlation = idBeside(m.ID), idBeside(m.Correlation)
	p := amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, Priority: m.Priority, MessageId: m.ID, CorrelationId: m.Correlation,
		Type: m.Type, Timestamp: time.Now(), Body: m.Payload,
	}
	if m.Expires > 0 {
		p.Expiration = fmt.Sprint(max(1, m.Expires.Milliseconds()))
	}
	if !l.awaitPlace() {
		return ErrAway
	}
	defer func() { <-l.publishing }()
	confirmed, err := l.channel.PublishWithDeferredConfirm(exchange, m.Key, true, false, p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)() // the library leaves a confirmation open
	stored, err := confirmed.WaitContext(ctx)
	if err != nil {
		_ = l.raw.Close() // a message may be returned late
		return fmt.Errorf("the broker has not confirmed a message: %w", err)
	}
	if l.wasReturned(routed{m.Key, m.ID}) {
		return ErrNoQueue
	}
	if !stored {
		return ErrNotStored
	}
	return nil
}

// awaitPlace waits for a place among the messages without a confirmation. It does not take of the time
// for the confirmation: one that waits has sent nothing, and is no reason to end the connection.
func (l *openConn) awaitPlace() bool {
	late := time.NewTimer(confirmTime)
	defer late.Stop()
	select {
	case l.publishing <- struct{}{}:
		return true
	case <-l.ctx.Done():
	case <-late.C:
	}
	return false
}

// idBeside is an id as AMQP has it beside a message: none where it has no room. The library would end
// the connection for that; the message itself has the id.
func idBeside(id string) string {
	if len(id) > maxShort {
		return ""
	}
	return id
}

// wasReturned reports whether a message that is confirmed was returned.
func (l *openConn) wasReturned(m routed) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for more := true; more; {
		select {
		case r, isOpen := <-l.returned:
			if more = isOpen; isOpen { // it is closed with the connection
				l.unroutable[routed{r.RoutingKey, r.MessageId}]++
			}
		default:
			more = false
		}
	}
	n := l.unroutable[m]
	if n > 1 {
		l.unroutable[m] = n - 1
	} else {
		delete(l.unroutable, m)
	}
	return n > 0
}

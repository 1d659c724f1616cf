package broker

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Limits of shared queues. A program that has little under way gets the next message: the broker sends
// few before one is acknowledged.
const (
	maxShared      = 64
	sharedPrefetch = 8
)

// readShared reads the shared queues that are wanted, and from those that are not it takes nothing
// more.
func (c *Conn) readShared(l *openConn) error {
	if c.opt.Shared == nil {
		return nil
	}
	wanted := map[string]bool{}
	for _, key := range c.opt.Shared() {
		wanted[key] = len(wanted) < maxShared
		if l.shared[key] != nil || !wanted[key] {
			continue
		}
		deliveries, stop, err := l.readSharedQueue(c.opt, key)
		if err != nil {
			return fmt.Errorf("the queue %s cannot be read: %w", sharedQueue(c.opt, key), err)
		}
		l.shared[key] = stop
		c.takeAll(l, deliveries)
	}
	for key, stop := range l.shared {
		if !wanted[key] {
			stop()
			delete(l.shared, key)
		}
	}
	return nil
}

func sharedQueue(o Options, key string) string { return o.Exchange + "." + key }

// readSharedQueue begins to read a queue. Until stop is called messages come.
func (l *openConn) readSharedQueue(o Options, key string) (deliveries <-chan amqp.Delivery, stop context.CancelFunc, err error) {
	if err = l.declareShared(o, key); err == nil {
		err = l.channel.Qos(sharedPrefetch, 0, false)
	}
	if err != nil {
		return nil, nil, err
	}
	ctx, stop := context.WithCancel(l.ctx)
	deliveries, err = l.channel.ConsumeWithContext(ctx, sharedQueue(o, key), "", false, false, false, false, nil)
	if err != nil {
		stop()
	}
	return deliveries, stop, err
}

// declareShared makes a queue and binds it to its key. One that another program has made with other
// arguments is taken as it is. The broker ends a channel after an error, so each attempt has its own.
func (l *openConn) declareShared(o Options, key string) error {
	name := sharedQueue(o, key)
	err := l.onChannel(func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, queueArguments(o))
		return err
	})
	if refused, is := errors.AsType[*amqp.Error](err); is && refused.Code == amqp.PreconditionFailed {
		err = nil
	}
	if err != nil {
		return err
	}
	return l.onChannel(func(ch *amqp.Channel) error { return ch.QueueBind(name, key, o.Exchange, false, nil) })
}

// onChannel does something on a channel of its own.
func (l *openConn) onChannel(do func(*amqp.Channel) error) error {
	ch, err := l.conn.Channel()
	if err != nil {
		return err
	}
	defer func() { _ = ch.Close() }() // after an error it is closed
	return do(ch)
}

package broker

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"runtime"
	"testing"
)

// fakeBroker is the broker's side of a connection: it takes what a [Conn] declares, and hands over what
// that publishes.
type fakeBroker struct {
	conn net.Conn
	// came has the texts of the published messages, in order: the first has the delivery tag 1.
	came chan string
	// refuse answers the credentials in place of the method that goes on; it may be nil.
	refuse func(arguments []byte) error
}

// methods of AMQP 0-9-1, by class and method (https://www.rabbitmq.com/amqp-0-9-1-reference).
const (
	startMethod  = 10<<16 | 10
	closeMethod  = 10<<16 | 50
	cancelMethod = 60<<16 | 30
	returnMethod = 60<<16 | 50
	ackMethod    = 60<<16 | 80
	nackMethod   = 60<<16 | 120
)

// answers are the arguments of the method that follows one of a client, whose number is the next.
var answers = map[uint32][]byte{
	10<<16 | 40: {0}, 10<<16 | 50: {}, 20<<16 | 10: {0, 0, 0, 0}, 20<<16 | 40: {}, 40<<16 | 10: {},
	50<<16 | 10: {0, 0, 0, 0, 0, 0, 0, 0, 0}, 50<<16 | 20: {}, 60<<16 | 10: {}, 60<<16 | 20: {0}, 85<<16 | 10: {},
}

// tune is the method that follows the credentials: any channels, frames as large as here, no heartbeat.
var tune = []byte{0, 0, 0, 2, 0, 0, 0, 0}

// sendMethod sends a method with its arguments.
func (p *fakeBroker) sendMethod(channel uint16, method uint32, arguments ...byte) error {
	_, err := p.conn.Write(frameOf(1, channel, append(binary.BigEndian.AppendUint32(nil, method), arguments...)))
	return err
}

// sendVerdict sends a verdict on messages up to a delivery tag, or on one.
func (p *fakeBroker) sendVerdict(t *testing.T, method uint32, tag uint64, upTo byte) {
	t.Helper()
	if err := p.sendMethod(1, method, append(binary.BigEndian.AppendUint64(nil, tag), upTo)...); err != nil {
		t.Error(err)
	}
}

// sendReturn returns a message for which there is no queue.
func (p *fakeBroker) sendReturn(t *testing.T, key, id string) {
	t.Helper()
	arguments := append([]byte{312 >> 8, 312 & 0xff, 0, 0, byte(len(key))}, key...)
	header := append([]byte{0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, byte(len(id))}, id...)
	if err := p.sendMethod(1, returnMethod, arguments...); err != nil {
		t.Error(err)
	}
	if _, err := p.conn.Write(frameOf(typeHeader, 1, header)); err != nil {
		t.Error(err)
	}
}

// serve reads the frames of the client until its connection ends.
func (p *fakeBroker) serve() error {
	in := bufio.NewReader(p.conn)
	if _, err := in.Discard(len("AMQP0091")); err != nil {
		return err
	}
	if err := p.sendMethod(0, startMethod, []byte("\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US")...); err != nil {
		return err
	}
	for {
		head := make([]byte, frameHead)
		if _, err := io.ReadFull(in, head); err != nil {
			return err
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[3:])+frameEnd)
		if _, err := io.ReadFull(in, frame); err != nil {
			return err
		}
		switch head[0] {
		case 1:
			if err := p.answer(binary.BigEndian.Uint16(head[1:]), binary.BigEndian.Uint32(frame), frame[4:]); err != nil {
				return err
			}
		case typeBody:
			p.came <- string(frame[:len(frame)-frameEnd])
		}
	}
}

// answer answers a method.
func (p *fakeBroker) answer(channel uint16, method uint32, arguments []byte) error {
	switch answer, has := answers[method]; {
	case method == startMethod+1 && p.refuse != nil:
		return p.refuse(arguments)
	case method == startMethod+1:
		return p.sendMethod(channel, method+19, tune...)
	case method == cancelMethod: // the answer has the consumer's name, too
		return p.sendMethod(channel, method+1, arguments[:1+arguments[0]]...)
	case has:
		return p.sendMethod(channel, method+1, answer...)
	}
	return nil
}

// startConn runs a connection; its brokers come in the order in which it is made.
func startConn(t *testing.T) (c *Conn, brokers <-chan *fakeBroker) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	list := make(chan *fakeBroker, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p := &fakeBroker{conn: conn, came: make(chan string, 2*maxPublishing)}
			list <- p
			go func() { _ = p.serve() }()
		}
	}()
	c = New(Options{
		URL: "amqp://" + l.Addr().String(), Exchange: "amp", Queue: "amp.hive", Keys: func() []string { return nil }, MaxMessage: 1 << 10, Log: slog.New(slog.DiscardHandler),
		Take: func(context.Context, Message, func(Verdict)) {},
	})
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() {
		end()
		_ = l.Close()
		<-done
	})
	return c, list
}

// await returns when a connection is made, or lost.
func (c *Conn) await(made bool) {
	for (c.State() == nil) != made {
		runtime.Gosched()
	}
}

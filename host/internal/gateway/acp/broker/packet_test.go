package broker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
)

// streamConn is a connection whose other side has sent a text.
type streamConn struct {
	net.Conn
	io.Reader
}

func (c streamConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

// packetOf is a packet with so many bytes of content.
func packetOf(size int) []byte {
	head := []byte{packets.PUBLISH << 4}
	for rest := size; ; {
		b := byte(rest & 0x7f)
		if rest >>= 7; rest == 0 {
			return append(append(head, b), bytes.Repeat([]byte{0xff}, size)...)
		}
		head = append(head, b|0x80)
	}
}

// Packets are read as they came, however they are cut, up to the first one that is too
// large: of that nothing comes but the begin of its length.
func TestLargePacketsEnd(t *testing.T) {
	t.Parallel()
	const most = 20_000
	var good []byte
	for _, size := range []int{0, 1, 127, 128, 16_383, 16_384, most} {
		good = append(good, packetOf(size)...)
	}
	for name, cut := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader} {
		for more, wrong := range map[string][]byte{"nothing": nil, "large": packetOf(most + 1), "endless": {0x30, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}} {
			var ended error
			e := &ending{Conn: streamConn{Reader: cut(bytes.NewReader(append(bytes.Clone(good), wrong...)))}, end: func(err error) { ended = err }, max: most}
			got, err := io.ReadAll(e)
			if !bytes.HasPrefix(got, good) || len(got) > len(good)+maxLengthBytes+1 || (err != nil) != (wrong != nil) || err != ended {
				t.Errorf("%s, then %s: %d bytes of %d, %v and %v", name, more, len(got), len(good), err, ended)
			}
		}
	}
}

// badBroker takes a connection and its subscription, and once the host is connected sends the begin of a
// packet of 200 MiB, whose rest never comes.
func badBroker(t *testing.T, l net.Listener, connected func() bool) {
	conn, err := l.Accept()
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	for subscribed := false; !subscribed; {
		got, err := packets.ReadPacket(conn)
		if err != nil {
			t.Error(err)
			return
		}
		switch p := got.Content.(type) { // a ping may come between them
		case *packets.Connect:
			_, err = (&packets.Connack{Properties: &packets.Properties{}}).WriteTo(conn)
		case *packets.Subscribe:
			subscribed = true
			_, err = (&packets.Suback{PacketID: p.PacketID, Reasons: []byte{1}, Properties: &packets.Properties{}}).WriteTo(conn)
		}
		if err != nil {
			t.Error(err)
		}
	}
	for !connected() {
		time.Sleep(time.Millisecond)
	}
	_, _ = conn.Write([]byte{packets.PUBLISH << 4, 0x80, 0x80, 0x80, 0x64})
	_, _ = io.Copy(io.Discard, conn)
}

// A broker that does not hold to the size of packets that it was told loses the connection
// with the reason, before there is room for the packet.
func TestBrokerWithLargePackets(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := New(Options{URL: "mqtt://" + l.Addr().String(), ClientID: "c", Filter: "x", MaxPacket: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	served := make(chan struct{})
	go func() {
		defer close(served)
		badBroker(t, l, func() bool { return c.State() == nil || ctx.Err() != nil })
		_ = l.Close()
	}()
	up, err := c.serve(ctx)
	<-served
	runtime.ReadMemStats(&after)
	if !up || err == nil || !strings.Contains(err.Error(), "209715200 bytes, and was told that the maximum is 1048576") {
		t.Errorf("up %t, %v", up, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 100<<20 {
		t.Errorf("%d MiB were held", grown>>20)
	}
}

// tooMany serves a connection on which it sends 100 messages at once, however many the host takes, and
// confirms what the host sends. When all are acknowledged it stops the host, and then closes the connection.
func tooMany(t *testing.T, l net.Listener, stop func()) {
	defer stop()
	conn, err := l.Accept()
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	defer stop()
	send := func(p packets.Packet) {
		if _, err := p.WriteTo(conn); err != nil {
			t.Error(err)
		}
	}
	for acknowledged := 0; acknowledged < 100; {
		got, err := packets.ReadPacket(conn)
		if err != nil {
			t.Errorf("%v, with %d acknowledged", err, acknowledged)
			return
		}
		switch p := got.Content.(type) {
		case *packets.Connect:
			send(&packets.Connack{Properties: &packets.Properties{}})
		case *packets.Subscribe:
			for id := range uint16(100) {
				send(&packets.Publish{PacketID: id + 1, QoS: 1, Topic: "x", Payload: []byte("?"), Properties: &packets.Properties{}})
			}
			send(&packets.Suback{PacketID: p.PacketID, Reasons: []byte{1}, Properties: &packets.Properties{}})
		case *packets.Publish:
			send(&packets.Puback{PacketID: p.PacketID, Properties: &packets.Properties{}})
		case *packets.Puback:
			acknowledged++
		}
	}
}

// TestBrokerThatSendsTooMany: a broker sends more messages at once than it was told, as Mosquitto
// does while it gets answers. Each is answered before it is acknowledged, and no answer waits for the
// messages behind it.
func TestBrokerThatSendsTooMany(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	served := make(chan struct{})
	go func() {
		defer close(served)
		tooMany(t, l, stop)
	}()
	var c *Conn
	c = New(Options{URL: "mqtt://" + l.Addr().String(), ClientID: "c", Filter: "x", MaxPacket: 1 << 20, Log: slog.New(slog.DiscardHandler),
		Take: func(ctx context.Context, m Message) bool {
			for {
				_, err := c.Publish(ctx, "y", "text/plain", m.Payload)
				if err == nil || ctx.Err() != nil {
					return err == nil
				}
				time.Sleep(time.Millisecond) // the subscription is not confirmed
			}
		}})
	if up, err := c.serve(ctx); !up || !errors.Is(err, context.Canceled) {
		t.Errorf("up %t, %v", up, err)
	}
	_ = l.Close()
	<-served
}

// backlogBroker has 100 messages of 4,000 bytes for the host. It sends all that are not acknowledged at the
// begin of each connection, and what confirms a message of the host behind them. It returns when all
// are acknowledged.
func backlogBroker(t *testing.T, l net.Listener) {
	var acknowledged [101]bool
	for left := 100; left > 0; {
		conn, err := l.Accept()
		if err != nil {
			t.Errorf("%v, with %d left", err, left)
			return
		}
		send := func(p packets.Packet) { _, _ = p.WriteTo(conn) } // the host may have left
		for err == nil && left > 0 {
			var got *packets.ControlPacket
			if got, err = packets.ReadPacket(conn); err != nil {
				break
			}
			switch p := got.Content.(type) {
			case *packets.Connect:
				send(&packets.Connack{Properties: &packets.Properties{}})
			case *packets.Subscribe:
				send(&packets.Suback{PacketID: p.PacketID, Reasons: []byte{1}, Properties: &packets.Properties{}})
				for id := range uint16(100) {
					if !acknowledged[id+1] {
						payload := bytes.Repeat([]byte{byte(id + 1)}, 4000)
						send(&packets.Publish{PacketID: id + 1, QoS: 1, Topic: "x", Payload: payload, Properties: &packets.Properties{}})
					}
				}
			case *packets.Publish:
				send(&packets.Puback{PacketID: p.PacketID, Properties: &packets.Properties{}})
			case *packets.Puback:
				if !acknowledged[p.PacketID] {
					acknowledged[p.PacketID] = true
					left--
				}
			}
		}
		_ = conn.Close()
	}
}

// TestBrokerWithBacklog: a broker that sends more bytes at once than there is room for, as Mosquitto
// does after an absence, holds up no confirmation of what the host sends for the oldest of them. All are
// taken in their order.
func TestBrokerWithBacklog(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	served := make(chan struct{})
	go func() {
		defer close(served)
		defer stop()
		backlogBroker(t, l)
	}()
	var c *Conn
	taken := byte(0)
	c = New(Options{URL: "mqtt://" + l.Addr().String(), ClientID: "c", Filter: "x", MaxPacket: 1 << 12, Log: slog.New(slog.DiscardHandler),
		Take: func(ctx context.Context, m Message) bool {
			if id := m.Payload[0]; id > taken+1 {
				t.Errorf("message %d came after %d", id, taken)
			}
			taken = max(taken, m.Payload[0])
			for {
				_, err := c.Publish(ctx, "y", "text/plain", m.Payload[:1])
				if err == nil || ctx.Err() != nil {
					return err == nil
				}
				time.Sleep(time.Millisecond) // the subscription is not confirmed
			}
		}})
	c.Run(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("after a minute %d messages are taken", taken)
	}
	_ = l.Close()
	<-served
	if taken != 100 {
		t.Errorf("%d messages are taken", taken)
	}
}

// TestMessagesWithoutConfirmation: messages of quality of service 0 have a room of their own, with
// their properties counted. One without room is dropped, and one that is confirmed is not.
func TestMessagesWithoutConfirmation(t *testing.T) {
	t.Parallel()
	in := newInbox(1 << 10)
	large := &packets.Publish{Topic: "x", Properties: &packets.Properties{User: []packets.User{{Key: "k", Value: strings.Repeat("x", 1<<10)}}}}
	kept := 0
	for range 100 {
		err := in.push(paho.PublishFromPacketPublish(large))
		if err == nil {
			kept++
		} else if !errors.Is(err, errDropped) {
			t.Fatal(err)
		}
	}
	if kept == 0 || kept >= unconfirmedPackets {
		t.Errorf("%d are kept", kept)
	}
	if err := in.push(&paho.Publish{Topic: "x", QoS: 1}); err != nil {
		t.Error(err)
	}
	for range kept + 1 {
		p, ok := in.pop(t.Context())
		if !ok {
			t.Fatal("a message is lost")
		}
		in.release(p)
	}
	if err := in.push(paho.PublishFromPacketPublish(large)); err != nil {
		t.Error(err)
	}
}

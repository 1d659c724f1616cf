package broker

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/eclipse/paho.golang/packets"
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

// badBroker takes a connection and its subscription, and then sends the begin of a packet of
// 200 MiB, whose rest never comes.
func badBroker(t *testing.T, l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	for _, answer := range []packets.Packet{
		&packets.Connack{Properties: &packets.Properties{}}, &packets.Suback{PacketID: 1, Reasons: []byte{1}, Properties: &packets.Properties{}},
	} {
		if _, err := packets.ReadPacket(conn); err != nil {
			t.Error(err)
		}
		if _, err := answer.WriteTo(conn); err != nil {
			t.Error(err)
		}
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
	served := make(chan struct{})
	go func() {
		defer close(served)
		badBroker(t, l)
		_ = l.Close()
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := New(Options{URL: "mqtt://" + l.Addr().String(), ClientID: "c", Filter: "x", MaxPacket: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	up, err := c.serve(ctx)
	<-served
	runtime.ReadMemStats(&after)
	if !up || err == nil || !strings.Contains(err.Error(), "209715200 bytes, and was told that the maximum is 1114112") {
		t.Errorf("up %t, %v", up, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 100<<20 {
		t.Errorf("%d MiB were held", grown>>20)
	}
}

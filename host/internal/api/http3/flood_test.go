package http3_test

import (
	"crypto/rand"
	"encoding/binary"
	"net"
	"net/http"
	"testing"
	"time"

	"skep/host/internal/api/listener"
)

// Types of packets with a long header, version 1
// (https://www.rfc-editor.org/rfc/rfc9000.html#section-17.2).
const (
	longHeader    = 0xc0
	initialPacket = longHeader
	earlyPacket   = longHeader | 0x10
	shakePacket   = longHeader | 0x20
)

// datagram is a datagram of 1200 bytes with one packet: its header counts, and the rest is
// random. token is of an Initial packet alone.
func datagram(t *testing.T, kind byte, version uint32, token []byte) []byte {
	t.Helper()
	head := binary.BigEndian.AppendUint32([]byte{kind}, version)
	ids := make([]byte, 16)
	if _, err := rand.Read(ids); err != nil {
		t.Fatal(err)
	}
	head = append(append(append(append(head, 8), ids[:8]...), 8), ids[8:]...)
	if kind == initialPacket {
		head = append(append(head, byte(len(token))), token...)
	}
	rest := make([]byte, 1200-len(head))
	if _, err := rand.Read(rest); err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint16(rest, 0x4000|uint16(len(rest)-2)) // the length, in two bytes
	return append(head, rest...)
}

// TestFlood (U-052): thousands of datagrams that only look like the first ones of callers, early
// data without a handshake among them, hold no connection. They are answered by fewer bytes than
// they have, so that the host is of no use against the addresses which they name, and a caller
// beside them is served.
func TestFlood(t *testing.T) {
	t.Parallel()
	s := newSite(t, listener.Limits{Connections: 1}, func(http.ResponseWriter, *http.Request) {})
	socket, err := new(net.Dialer).DialContext(t.Context(), "udp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	answered := make(chan int)
	go func() {
		sum, b := 0, make([]byte, 1<<16)
		for {
			n, err := socket.Read(b)
			if err != nil {
				answered <- sum
				return
			}
			sum += n
		}
	}()
	sent := 0
	for range 500 {
		for _, text := range [][]byte{
			datagram(t, initialPacket, 1, nil), datagram(t, initialPacket, 1, []byte("a token of another host")), datagram(t, initialPacket, 2, nil),
			datagram(t, earlyPacket, 1, nil), datagram(t, shakePacket, 1, nil), datagram(t, 0x40, 1, nil),
		} {
			n, err := socket.Write(text)
			if err != nil {
				t.Fatal(err)
			}
			sent += n
		}
		if n := s.Connections(); n != 0 {
			t.Fatalf("%d connections", n)
		}
	}
	if _, err := do(t.Context(), s.client(t), http.MethodGet, s.url, ""); err != nil {
		t.Errorf("a caller beside them: %v", err)
	}
	if err := socket.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got == 0 || got > sent {
		t.Errorf("%d bytes are answered by %d", sent, got)
	}
}

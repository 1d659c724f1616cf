package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/eclipse/paho.golang/packets"
)

// ending is the connection of a client. It reports its end at once: the client does so when
// all messages are handled, and one of them may wait. It ends with a packet of more than max
// bytes, of which nothing is read: the client makes room for whatever length a packet claims,
// up to 256 MiB.
type ending struct {
	net.Conn
	end context.CancelCauseFunc
	max int
	// overrun reports whether messages that are acknowledged are passed over. Nil passes over none.
	overrun func() bool

	// left are the bytes of the current packet that were not read. Where there are none, a
	// header comes: its first byte, and the length, whose bytes so far and value these are
	// (https://docs.oasis-open.org/mqtt/mqtt/v5.0/os/mqtt-v5.0-os.html#_Toc3901021).
	left, headed, length int
}

var (
	errLost       = errors.New("the connection was lost")
	errLongLength = errors.New("the broker sends a packet whose length has more than 4 bytes")
)

// Close implements [net.Conn].
func (e *ending) Close() error {
	e.end(errLost)
	return e.Conn.Close()
}

// Read implements [net.Conn].
func (e *ending) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if e.left == 0 {
		return e.readHeader(p[:1])
	}
	n, err := e.Conn.Read(p[:min(len(p), e.left)])
	e.left -= n
	return n, err
}

// maxLengthBytes bounds a length, of seven bits a byte.
const maxLengthBytes = 4

// readHeader reads one byte before a packet's content. The last one of a length is handed
// on only if there is room for the packet.
func (e *ending) readHeader(p []byte) (int, error) {
	n, err := e.Conn.Read(p)
	for n > 0 && e.headed == 0 && isConfirmed(p[0]) && e.overrun != nil && e.overrun() {
		if err := e.passOver(); err != nil {
			return 0, e.fail(err)
		}
		n, err = e.Conn.Read(p)
	}
	if n == 0 {
		return n, err
	}
	if e.headed > 0 {
		e.length |= int(p[0]&0x7f) << (7 * (e.headed - 1))
	}
	isLast := e.headed > 0 && p[0]&0x80 == 0
	switch {
	case e.headed > maxLengthBytes:
		return 0, e.fail(errLongLength)
	case isLast && e.length > e.max:
		return 0, e.fail(fmt.Errorf("the broker sends a packet of %d bytes, and was told that the maximum is %d", e.length, e.max))
	case isLast:
		e.left, e.headed, e.length = e.length, 0, 0
	default:
		e.headed++
	}
	return n, err
}

// isConfirmed reports whether a packet with this first byte is a message that is acknowledged
// (https://docs.oasis-open.org/mqtt/mqtt/v5.0/os/mqtt-v5.0-os.html#_Toc3901101).
func isConfirmed(first byte) bool {
	const quality = 0x06
	return first>>4 == packets.PUBLISH && first&quality != 0
}

// passOver reads a packet behind its first byte, for the one behind it.
func (e *ending) passOver() error {
	length := int64(0)
	for n, b := 0, []byte{0x80}; b[0]&0x80 != 0; n++ {
		if n == maxLengthBytes {
			return errLongLength
		}
		if _, err := io.ReadFull(e.Conn, b); err != nil {
			return err
		}
		length |= int64(b[0]&0x7f) << (7 * n)
	}
	_, err := io.CopyN(io.Discard, e.Conn, length)
	return err
}

// fail ends the connection with a reason, and returns it.
func (e *ending) fail(err error) error {
	e.end(err)
	return err
}

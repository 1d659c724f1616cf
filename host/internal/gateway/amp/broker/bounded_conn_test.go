package broker

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
)

// frameOf is a frame of the broker.
func frameOf(kind byte, channel uint16, payload []byte) []byte {
	frame := binary.BigEndian.AppendUint16([]byte{kind}, channel)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(payload)))
	return append(append(frame, payload...), 0xce)
}

// headerOf is the frame that begins a message with a body of a size.
func headerOf(channel uint16, size uint64) []byte {
	return frameOf(typeHeader, channel, append(binary.BigEndian.AppendUint64([]byte{0, 60, 0, 0}, size), "properties"...))
}

// streamConn is a connection whose other side has sent a text.
type streamConn struct {
	net.Conn
	io.Reader
}

func (c streamConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

// TestBodiesAreBounded (M-095): frames are read as they came, however they are cut, but for a body
// that is too large: of that only the head is read, without a size. A frame that is too large ends
// the connection.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	method, body := frameOf(1, 1, []byte("deliver")), func(channel uint16, n int) []byte { return frameOf(typeBody, channel, make([]byte, n)) }
	sent := bytes.Join([][]byte{
		method, headerOf(1, 100), body(1, 60), body(1, 40), // fits
		method, headerOf(1, 250), body(1, 100), headerOf(2, 10), body(1, 100), body(2, 10), body(1, 50), // does not
		method, headerOf(1, 1<<63), method, headerOf(3, 0), frameOf(8, 0, nil),
	}, nil)
	want := bytes.Join([][]byte{
		method, headerOf(1, 100), body(1, 60), body(1, 40),
		method, headerOf(1, 0), headerOf(2, 10), body(2, 10),
		method, headerOf(1, 0), method, headerOf(3, 0), frameOf(8, 0, nil),
	}, nil)
	for name, cut := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader} {
		got, err := io.ReadAll(&boundedConn{Conn: streamConn{Reader: cut(bytes.NewReader(sent))}, max: 100})
		if !bytes.Equal(got, want) || err != nil {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(want), err)
		}
	}
	large := append(bytes.Clone(method), 3, 0, 1, 0x40, 0, 0, 0)
	got, err := io.ReadAll(&boundedConn{Conn: streamConn{Reader: bytes.NewReader(large)}, max: 100})
	if !bytes.Equal(got, method) || err == nil || !strings.Contains(err.Error(), "1073741824 bytes") {
		t.Errorf("a large frame: %q, %v", got, err)
	}
	got, err = io.ReadAll(&boundedConn{Conn: streamConn{Reader: strings.NewReader("AMQP\x00\x01\x00\x00")}, max: 100})
	if !strings.HasPrefix(string(got), "AMQP\x00\x01\x00") {
		t.Errorf("a broker of another version: %q, %v", got, err)
	}
}

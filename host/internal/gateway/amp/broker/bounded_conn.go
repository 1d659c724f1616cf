package broker

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// Parts of a frame (https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf, section 4.2).
const (
	frameHead  = 7 // type, channel, size of the payload
	frameEnd   = 1
	typeHeader = 2 // begins a message: class, weight, size of its body
	typeBody   = 3
	bodySizeAt = frameHead + 4
	headerLeft = bodySizeAt + 8
)

// boundedConn is the connection of a client. The library holds a message of any size, up to
// 128 MiB of the broker's; here one of more than max bytes comes without its body, which is
// read past. One frame is held at a time.
type boundedConn struct {
	net.Conn
	max uint64

	once sync.Once
	in   *bufio.Reader
	// frame are the bytes of the current frame that were not read.
	frame []byte
	// skip are the bytes of bodies to read past, by channel.
	skip map[uint16]uint64
}

// Read implements [net.Conn]. It is used by one goroutine.
func (c *boundedConn) Read(p []byte) (int, error) {
	c.once.Do(func() { c.in, c.skip = bufio.NewReader(c.Conn), map[uint16]uint64{} })
	for len(c.frame) == 0 {
		if err := c.readFrame(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.frame)
	c.frame = c.frame[n:]
	return n, nil
}

// readFrame reads a frame, and drops one of a body that is too large.
func (c *boundedConn) readFrame() error {
	head, err := c.in.Peek(frameHead)
	if err != nil {
		return err
	}
	if head[0] == 'A' { // a broker of another version answers with its header
		c.frame = append([]byte(nil), head...)
		_, err := c.in.Discard(frameHead)
		return err
	}
	channel, size := binary.BigEndian.Uint16(head[1:]), binary.BigEndian.Uint32(head[3:])
	if size > frameSize {
		return fmt.Errorf("the broker sends a frame of %d bytes, and was told that the maximum is %d", size, frameSize)
	}
	frame := make([]byte, frameHead+int(size)+frameEnd)
	if _, err := io.ReadFull(c.in, frame); err != nil {
		return err
	}
	switch {
	case frame[0] == typeHeader && len(frame) >= headerLeft+frameEnd:
		body := frame[bodySizeAt:headerLeft]
		c.skip[channel] = 0
		if n := binary.BigEndian.Uint64(body); n > c.max {
			c.skip[channel] = n
			binary.BigEndian.PutUint64(body, 0)
		}
	case frame[0] == typeBody && c.skip[channel] > 0:
		c.skip[channel] -= min(c.skip[channel], uint64(size))
		return nil
	}
	c.frame = frame
	return nil
}

package iacp

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// acknowledge confirms to the peer that a message is kept.
func (c *conn) acknowledge(m message.Message) {
	if c.acks || m.Meta().Ack {
		_ = c.write(c.newAck(m))
	}
}

func (c *conn) newAck(m message.Message) message.Message {
	return c.compose(message.Ack, m, map[string]any{"message_id": m.ID, "status": "received"})
}

// tell writes a message of the host itself, about another or none.
func (c *conn) tell(t message.Type, about message.Message, payload any) error {
	return c.write(c.compose(t, about, payload))
}

// compose makes a message of the host itself.
func (c *conn) compose(t message.Type, about message.Message, payload any) message.Message {
	from := c.g.Network
	if about.To() != "" {
		from = about.To()
	}
	m := message.New(t, from, payload)
	m.Parent, m.Conversation = about.ID, about.Conversation
	if about.Sender.ID != "" {
		m.Recipient = &message.Recipient{ID: about.Sender.ID}
	}
	return m
}

// refuse answers a message that was not taken. Answers get no answer (G-031), and who has
// left hears nothing.
func (c *conn) refuse(m message.Message, err error) {
	switch {
	case errors.Is(err, message.ErrHTTP):
		_ = c.net.SetWriteDeadline(time.Now().Add(writeTime))
		_, _ = c.net.Write([]byte(healthy))
		return
	case c.ctx.Err() != nil && (isOver(err) || errors.Is(err, context.Cause(c.ctx))):
		return
	case c.refuseTool(m, err):
		return
	}
	f := c.g.faultOf(err)
	if m.Type.Class() == message.Answers && f.code != codeInvalid {
		return
	}
	_ = c.tell(message.ErrorResponse, m, f.payload())
}

// lastTime is how long a peer that has all that is due may take to leave.
const lastTime = 5 * time.Second

// closeWrite ends what is sent, so that the peer reads all of it and then the end.
func (c *conn) closeWrite() {
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		_ = c.net.Close()
		return
	}
	_ = c.net.SetReadDeadline(time.Now().Add(lastTime))
}

// linger lets the peer read why its frame was refused: closing at once, with bytes of it
// unread, would cost it the reason.
func (c *conn) linger() {
	if half, ok := c.net.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.net.SetReadDeadline(time.Now().Add(writeTime))
		_, _ = io.CopyN(io.Discard, c.net, 4*c.g.MaxBody)
	}
}

// write writes a message. A peer that does not read loses its connection.
func (c *conn) write(m message.Message) error {
	text, err := c.g.encode(c.caller, m)
	if err != nil {
		return err
	}
	return c.writeText(text)
}

// errTooLong is returned for a message that the peer would not take.
var errTooLong = gateway.Refuse("the message is longer than the peer takes")

func (c *conn) writeText(text []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.writeLocked(text)
}

// writeLocked is writeText for a caller that holds writing. The acknowledgements that are held go first, by
// the same write.
func (c *conn) writeLocked(text []byte) error {
	if int64(len(text)) > c.peerMost {
		return errTooLong
	}
	frames := c.held.release()
	return c.writeFrames(message.AppendFrame(slices.Grow(frames, len(text)+4), text))
}

// writeFrames writes frames. c.writing is held.
func (c *conn) writeFrames(frames []byte) error {
	_ = c.net.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := c.net.Write(frames)
	if err != nil && c.end != nil {
		c.end(err)
	}
	return err
}

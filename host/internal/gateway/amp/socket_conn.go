package amp

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/coder/websocket"

	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/sockets"
	"skep/host/internal/gateway/wire"
)

// socketConn is the connection of a [socket]. Its reads are one after the other; the other methods
// may be called at any time.
type socketConn interface {
	sockets.Conn
	// read reads a message of at most so many bytes, within a pace. An error has ended the
	// connection; io.EOF means that answers may still be written.
	read(ctx context.Context, most int64, pace wire.Pace) ([]byte, error)
	// write writes a message. A peer that does not read loses its connection.
	write(ctx context.Context, text []byte) error
	// deliver is write for a message of ours that nothing may lose: it returns when the peer's side
	// has it, where the connection has a word for that.
	deliver(ctx context.Context, text []byte) error
	// shut ends the connection and shows the peer why, by a code where it is a WebSocket.
	shut(code websocket.StatusCode, why *message.Fault)
	// keepAlive returns when the peer does not answer any more, or with the cause of ctx.
	keepAlive(ctx context.Context) error
}

// webSocket is a WebSocket as the connection of a socket.
type webSocket struct{ *websocket.Conn }

func (c webSocket) read(ctx context.Context, most int64, pace wire.Pace) ([]byte, error) {
	kind, text, err := wire.ReadSocket(ctx, c.Conn, most, pace)
	switch {
	case errors.Is(err, websocket.ErrMessageTooBig):
		_ = c.Close(websocket.StatusMessageTooBig, fmt.Sprintf("a message is larger than max_body, %d bytes", most))
		return nil, errMessageTooLarge
	case err == nil && kind != websocket.MessageText:
		err = errors.New("a message is a text")
		_ = c.Close(websocket.StatusUnsupportedData, err.Error())
	case errors.Is(err, io.EOF): // a WebSocket has no half that is open
		err = errors.New("the WebSocket was closed")
	}
	return text, err
}

func (c webSocket) write(ctx context.Context, text []byte) error {
	return wire.WriteSocket(ctx, c.Conn, text, socketWrite)
}

func (c webSocket) deliver(ctx context.Context, text []byte) error {
	return wire.DeliverSocket(ctx, c.Conn, text, socketWrite)
}

func (c webSocket) shut(code websocket.StatusCode, why *message.Fault) {
	_ = c.Close(code, why.Text) // read ends with it
}

func (c webSocket) keepAlive(ctx context.Context) error {
	return wire.PingSocket(ctx, c.Conn, socketPing, socketWrite)
}

package wire

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/coder/websocket"
)

// ReadSocket reads a message of at most so many bytes from a WebSocket whose read limit is
// off. A larger one is [websocket.ErrMessageTooBig], after which the caller closes the socket
// with that status: Close reads for a while what the peer still sends. A library that closes
// at its own limit leaves that unread, and the peer is told of a reset connection and not why.
func ReadSocket(ctx context.Context, conn *websocket.Conn, most int64) (websocket.MessageType, []byte, error) {
	kind, r, err := conn.Reader(ctx)
	if err != nil {
		return 0, nil, err
	}
	message, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(message)) > most {
		err = fmt.Errorf("%w: it has at most %d bytes", websocket.ErrMessageTooBig, most)
	}
	return kind, message, err
}

// PingSocket pings the peer of a WebSocket until one ping is not answered within a time, and
// returns why; or ctx's cause. What reads the socket must go on meanwhile.
func PingSocket(ctx context.Context, conn *websocket.Conn, every, within time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			timed, cancel := context.WithTimeout(ctx, within)
			err := conn.Ping(timed)
			cancel()
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

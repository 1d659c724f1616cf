package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coder/websocket"
)

// MessageTime is how long a message on a WebSocket may be on its way after its first frame
// has begun: a peer that answers pings could hold its bytes for ever.
const MessageTime = time.Minute

// ErrSlowMessage is the error of a message that is not whole in its time.
var ErrSlowMessage = errors.New("a message is not whole in its time")

// ReadSocket reads a message of at most so many bytes from a WebSocket whose read limit is
// off. A larger one is [websocket.ErrMessageTooBig], after which the caller closes the socket
// with that status: Close reads for a while what the peer still sends. A library that closes
// at its own limit leaves that unread, and the peer is told of a reset connection and not why.
// A message that is not whole within a time after its first frame has begun closes the socket
// with [websocket.StatusPolicyViolation] and is [ErrSlowMessage].
func ReadSocket(ctx context.Context, conn *websocket.Conn, most int64, within time.Duration) (websocket.MessageType, []byte, error) {
	kind, r, err := conn.Reader(ctx)
	if err != nil {
		return 0, nil, err
	}
	closed := make(chan struct{})
	timer := time.AfterFunc(within, func() {
		defer close(closed)
		_ = conn.Close(websocket.StatusPolicyViolation, fmt.Sprintf("%v, %v", ErrSlowMessage, within))
	})
	message, err := io.ReadAll(io.LimitReader(r, most+1))
	if !timer.Stop() {
		<-closed
		return kind, nil, fmt.Errorf("%w, %v", ErrSlowMessage, within)
	}
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

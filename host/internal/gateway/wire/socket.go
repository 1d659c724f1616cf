package wire

import (
	"context"
	"time"

	"github.com/coder/websocket"
)

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

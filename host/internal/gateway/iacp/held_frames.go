package iacp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skep/host/internal/gateway"
)

// heldBytes bounds the frames above maxSmall that the host holds for one realm, on all its
// connections, in bytes: from the length of a frame until its message is taken.
const heldBytes = 32 << 20

// errHeld ends the wait of a frame for the room of its realm.
var errHeld = errors.New("larger messages of the partner are on their way, or wait to be taken; send fewer at once")

// admitProven waits until the realm of a known peer has room for a frame, at most FrameTime: the
// peer is not read meanwhile. Then the bytes of the frame have FrameTime.
func (c *conn) admitProven(length int64) error {
	if length <= maxSmall {
		return nil
	}
	ctx, stop := context.WithTimeoutCause(c.ctx, c.g.FrameTime, errHeld)
	defer stop()
	err := c.held.Acquire(ctx, length)
	_ = c.net.SetReadDeadline(time.Now().Add(c.g.FrameTime))
	switch {
	case err == nil:
		c.admitted = length
		return nil
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	}
	return fmt.Errorf("no room for %d bytes: %w: %w", length, errHeld, gateway.ErrBusy)
}

// release gives back the room of a frame whose message was read.
func (c *conn) release(text []byte) {
	if length := int64(len(text)); length > maxSmall {
		c.held.Release(length)
	}
}

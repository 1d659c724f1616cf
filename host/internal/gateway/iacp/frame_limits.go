package iacp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// maxSmall is the size of a frame that is read without a place or room, in bytes: a handshake, an
// auth and most messages.
const maxSmall = 8 << 10

// Limits of the frames of peers that have not shown a credential.
const (
	maxUnproven = 64 << 10 // bytes of a frame
	bigPlaces   = 64       // connections with one above maxSmall
)

// heldBytes bounds the frames above maxSmall that the host holds for one realm, on all its
// connections, in bytes: from the length of a frame until its message is taken. As much may be in
// smaller frames of its queues, and in answers that the realm has not acknowledged.
const heldBytes = 32 << 20

// admitUnproven refuses a frame that is too much for a peer that has not shown a credential. The first
// larger one takes a place, which the connection gives back by leavePlace.
func (c *conn) admitUnproven(length int64) error {
	switch {
	case length > maxUnproven:
		return fmt.Errorf("%w: %d bytes, at most %d before the peer has shown its credential", message.ErrTooLarge, length, maxUnproven)
	case length <= maxSmall || c.hasPlace:
		return nil
	}
	select {
	case c.g.bigUnproven <- struct{}{}:
		c.hasPlace = true
		return nil
	default:
		return fmt.Errorf("too many peers send more than %d bytes before they have shown a credential: begin with a handshake, or try again: %w", maxSmall, gateway.ErrBusy)
	}
}

// leavePlace gives back the place of a peer that has shown a credential, or has left.
func (c *conn) leavePlace() {
	if c.hasPlace {
		c.hasPlace = false
		<-c.g.bigUnproven
	}
}

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
	err := c.room.frames.Acquire(ctx, length)
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
		c.room.frames.Release(length)
	}
}

// queuedExtra is what a queued message holds beside its text, in bytes.
const queuedExtra = 512

// admitQueued waits until the realm has room for a message in its queues. A large one has room since
// its length was read.
func (c *conn) admitQueued(text []byte) error {
	if len(text) > maxSmall {
		return nil
	}
	return c.room.queued.Acquire(c.ctx, c.g.queuedRoom(text))
}

// releaseQueued gives back the room of a message that has left its queue.
func (c *conn) releaseQueued(text []byte) {
	if len(text) > maxSmall {
		c.release(text)
		return
	}
	c.room.queued.Release(c.g.queuedRoom(text))
}

func (g *Gateway) queuedRoom(text []byte) int64 { return min(int64(len(text)+queuedExtra), g.Held) }

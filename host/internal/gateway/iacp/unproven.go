package iacp

import (
	"fmt"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// Limits of the frames of peers that have not shown a credential. A handshake and an auth take less
// than maxSmall.
const (
	maxUnproven = 64 << 10 // bytes of a frame
	maxSmall    = 8 << 10  // bytes of a frame that needs no place
	bigPlaces   = 64       // connections with a larger one
)

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

// leavePlace ends the limits of a peer that has shown a credential, or has left.
func (c *conn) leavePlace() {
	c.frames.Admit = c.admitProven
	if c.hasPlace {
		c.hasPlace = false
		<-c.g.bigUnproven
	}
}

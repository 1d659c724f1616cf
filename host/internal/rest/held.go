package rest

import (
	"context"
	"errors"

	"skep/host/internal/swarm"
)

// held waits for the answer of a post until ctx ends, and hands it to nobody
// whose token has ceased to be valid meanwhile: it asks as often as a stream
// does, and once more before the wait is over.
func (c *call) held(ctx context.Context, receipt *swarm.Receipt) (swarm.Answer, error) {
	for {
		quiet, cancel := context.WithTimeoutCause(ctx, c.h.opt.Ping, errQuiet)
		answer, err := c.h.rt.Wait(quiet, receipt)
		over := quiet.Err() != nil && ctx.Err() == nil
		cancel()
		if c.ctx().Err() == nil {
			if revoked := c.stillKnown(); revoked != nil {
				c.h.counters.unauthenticated.Add(1)
				return swarm.Answer{}, unauthorized(revoked.Error())
			}
		}
		if err == nil || !over || errors.Is(err, swarm.ErrDraining) {
			return answer, err
		}
	}
}

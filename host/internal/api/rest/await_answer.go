package rest

import (
	"context"
	"errors"

	"skep/host/internal/swarm"
)

// awaitAnswer waits for the answer of a post until ctx ends. It checks the token
// again once per ping interval, and once more before it returns: a revoked token
// gets no answer.
func (c *call) awaitAnswer(ctx context.Context, receipt *swarm.Receipt) (swarm.Answer, error) {
	for {
		quiet, cancel := context.WithTimeoutCause(ctx, c.h.opt.Ping, errIdle)
		answer, err := c.h.posts.Wait(quiet, receipt)
		over := quiet.Err() != nil && ctx.Err() == nil
		cancel()
		if c.ctx().Err() == nil {
			if revoked := c.recheckToken(); revoked != nil {
				c.h.counters.unauthenticated.Inc()
				return swarm.Answer{}, unauthorized(revoked.Error())
			}
		}
		if err == nil || !over || errors.Is(err, swarm.ErrDraining) {
			return answer, err
		}
	}
}

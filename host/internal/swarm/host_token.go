package swarm

import (
	"context"

	"skep/host/internal/swarm/scheduler"
)

// hostToken is the CPU token with which the host prepares turns and mutations: it encodes
// inputs, and builds, encodes and seals what is written. Tenants share this work as they share
// the computing of guests, see [scheduler.CPU]. None is held while a mutation waits to be
// written. It serves one goroutine.
type hostToken struct {
	cpu   *scheduler.CPU // nil when it is not held
	owner scheduler.Owner
}

// acquireHostToken waits for a token of an instance. It may be called with the commit lock of
// a task, but not with its mu: holders of tokens wait for that.
func (r *Runtime) acquireHostToken(ctx context.Context, key InstanceKey) (*hostToken, error) {
	if err := r.cpu.Acquire(ctx, key.schedulerOwner()); err != nil {
		return &hostToken{}, err
	}
	return &hostToken{r.cpu, key.schedulerOwner()}, nil
}

// release gives the token back, once.
func (h *hostToken) release() {
	if h.cpu != nil {
		h.cpu.Release(h.owner)
		h.cpu = nil
	}
}

package host

import (
	"context"
	"errors"
	"fmt"

	"skep/host/internal/datadir"
	"skep/host/internal/store/cluster"
	"skep/host/internal/swarm"
)

// chores are this host's part in what all hosts do for a tenant.
type chores struct{ *Host }

// Phases of an erasure. Each host stops its work for the tenant, then one removes what is stored, then each
// host forgets what it has of it.
const (
	phaseStop   = 1
	phaseForget = 2
)

// Phases of a rotation. Each host reads the new key, then one reseals what is stored, then each host forgets the
// sizes that it remembers.
const (
	phaseKeys  = 1
	phaseSizes = 2
)

// shareChores makes the host take part in what all hosts do for a tenant.
func (h *Host) shareChores() {
	if h.member != nil {
		h.member.ShareChores(chores{h})
	}
}

// Begin implements [cluster.Chores].
func (c chores) Begin(ctx context.Context) (left []cluster.Chore, err error) {
	if err := errors.Join(c.store.Refresh(ctx), c.definitions.ForgetErased(ctx)); err != nil {
		return nil, err
	}
	erase, reseal, err := c.store.Undone(ctx)
	for _, tenant := range erase {
		left = append(left, cluster.Chore{Kind: datadir.ChoreErase, Tenant: tenant})
	}
	for _, tenant := range reseal {
		left = append(left, cluster.Chore{Kind: datadir.ChoreReseal, Tenant: tenant})
	}
	return left, err
}

// TakePart implements [cluster.Chores].
func (c chores) TakePart(ctx context.Context, of cluster.Chore, phase int) (part cluster.Part, err error) {
	switch {
	case of.Kind != datadir.ChoreErase:
		return part, c.store.Refresh(ctx)
	case phase == phaseStop:
		if err := c.swarm.StopTenant(ctx, of.Tenant); err != nil {
			return part, err
		}
		c.store.BlockTenant(of.Tenant)
		return part, nil
	}
	if err := c.store.Refresh(ctx); err != nil {
		return part, err
	}
	c.swarm.ForgetTenant(of.Tenant)
	part.Found, part.Fault = c.definitions.ForgetTenant(ctx, of.Tenant)
	return part, nil
}

// Drive implements [cluster.Chores].
func (c chores) Drive(ctx context.Context, of cluster.Chore, phase int) (last bool, err error) {
	switch {
	case of.Kind == datadir.ChoreErase && phase == phaseStop:
		return false, c.store.RemoveTenant(ctx, of.Tenant)
	case of.Kind == datadir.ChoreErase:
		return phase == phaseForget, nil
	case phase == phaseKeys:
		return false, c.store.Reseal(ctx, of.Tenant)
	case phase == phaseSizes:
		return true, nil
	case of.Kind == datadir.ChoreRotate:
		return false, c.store.AddKey(ctx, of.Tenant)
	}
	return false, nil
}

// End implements [cluster.Chores].
func (c chores) End(of cluster.Chore) {
	if of.Kind == datadir.ChoreErase {
		c.store.UnblockTenant(of.Tenant)
		c.swarm.ResumeTenant(of.Tenant)
	}
}

// isAlike is [definition.Options.IsAlike].
func (h *Host) isAlike() func() bool {
	if h.member == nil {
		return nil
	}
	return h.member.IsAlike
}

// eraseAll is [definition.Options.EraseAll].
func (h *Host) eraseAll() func(context.Context, string) error {
	if h.member == nil {
		return nil
	}
	return func(ctx context.Context, tenant string) error {
		kept, err := h.store.HasData(ctx, tenant)
		if err != nil {
			return err
		}
		all, err := h.member.DoChore(ctx, cluster.Chore{Kind: datadir.ChoreErase, Tenant: tenant})
		switch {
		case errors.Is(err, cluster.ErrBusy):
			return &swarm.Refusal{Kind: swarm.ErrConflict, Text: fmt.Sprintf("tenant '%s' is being erased already, or its key is rotated", tenant)}
		case errors.Is(err, cluster.ErrOldHost):
			return &swarm.Refusal{Kind: swarm.ErrConflict, Text: fmt.Sprintf("tenant '%s' is not erased: %v", tenant, err)}
		case errors.Is(err, cluster.ErrGoesOn):
			return swarm.ErrDraining
		case err != nil:
			return fmt.Errorf("%w: erase tenant %q: %w", swarm.ErrUnavailable, tenant, err)
		case all.Fault != nil:
			return fmt.Errorf("tenant %q is erased, but not all of its files: %w", tenant, all.Fault)
		case !kept && !all.Found:
			return &swarm.Refusal{Kind: swarm.ErrNotFound, Text: fmt.Sprintf("tenant '%s' keeps nothing", tenant)}
		}
		return nil
	}
}

package capability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"skep/host/internal/swarm"
)

// errModuleUnread is the error of a module that could not be read until the turn ended. It may be
// there.
var errModuleUnread = errors.New("the module cannot be read")

// loadRecorded loads the module of a recorded turn or action. While its copy cannot be read it tries
// again until ctx ends, so that a store which fails for a moment ends no turn; then the error is
// errModuleUnread. Without a turn, offline, it tries once.
func loadRecorded(ctx context.Context, t *swarm.Turn, modules Modules, digest string) (m Module, err error) {
	if t == nil {
		return modules.Module(ctx, digest)
	}
	var gone *ModuleGoneError
	err = t.RetryStore(ctx, func() error {
		var err error
		if m, err = modules.Module(ctx, digest); errors.As(err, &gone) {
			return nil
		}
		return err
	}, "load the module of a recorded turn", "module", digest)
	if gone != nil {
		return nil, gone
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errModuleUnread, err)
	}
	return m, err
}

// recordedBinding returns the binding for a turn that an earlier attempt began.
func (x *Executor) recordedBinding(ctx context.Context, t *swarm.Turn, current Binding) (Binding, error) {
	b, h := current, t.PriorAttempt().Header
	if err := json.Unmarshal(h.Limits, &b.Limits); err != nil {
		return b, fmt.Errorf("the turn's recorded limits cannot be read: %w", err)
	}
	if h.Recipe != x.recipe {
		return b, fmt.Errorf("the turn began on another version of skep or another CPU (%s, here %s), where it cannot be repeated", h.Recipe, x.recipe)
	}
	if h.Module == current.Module.Digest() {
		return b, nil
	}
	if x.modules == nil {
		return b, fmt.Errorf("the turn began on the module %s, which this host does not have any more; its agent now has %s", h.Module, current.Module.Digest())
	}
	m, err := loadRecorded(ctx, t, x.modules, h.Module)
	if err != nil {
		return b, fmt.Errorf("the turn began on the module %s, which this host cannot run any more: %w", h.Module, err)
	}
	b.Module = m
	return b, nil
}

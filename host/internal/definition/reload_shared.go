package definition

import (
	"context"
	"errors"

	"skep/host/internal/definition/plan"
)

// agree has all hosts put their files in force, or none.
func (l *Library) agree(ctx context.Context, next loadedFile) error {
	if err := l.rehearse(ctx, next); err != nil {
		return asUnchanged(err)
	}
	if err := l.opt.Agree(ctx, next.parts); err != nil {
		return conflict("%v", err)
	}
	return nil
}

// rehearse finds what would keep a file from being adopted: the other hosts must not have adopted it then.
func (l *Library) rehearse(ctx context.Context, next loadedFile) error {
	if err := l.change.Lock(ctx); err != nil {
		return err
	}
	defer l.change.Unlock()
	s, err := l.nextState(ctx, next.cfg, next.modules)
	return errors.Join(err, l.tools.discard(s.servers))
}

// Running are the parts of the file in force, see [plan.Parts].
func (l *Library) Running() map[string]string { return plan.Parts(l.running()) }

// Prepare loads the file as it is now, unless check refuses its parts. Until Adopt or Drop no other file is
// loaded.
func (l *Library) Prepare(ctx context.Context, check func(parts map[string]string) error) error {
	if err := l.reloading.Lock(ctx); err != nil {
		return err
	}
	next, err := l.load(ctx, check)
	if err == nil {
		err = l.rehearse(ctx, next)
	}
	l.prepared = next
	if err != nil {
		l.Drop()
	}
	return err
}

// Adopt puts in force what was prepared.
func (l *Library) Adopt(ctx context.Context) error {
	defer l.Drop()
	return l.putInForce(ctx, l.prepared)
}

// Drop forgets what was prepared.
func (l *Library) Drop() {
	l.prepared = loadedFile{}
	l.protectModules(nil)
	l.reloading.Unlock()
}

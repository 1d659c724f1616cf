package sandbox

import (
	"context"
	"errors"
)

// Startup is what an instance is when its first turn may begin.
type Startup struct {
	Memory int64 // bytes of linear memory
	Image  int64 // bytes of it that the image keeps
	// Reset is how an instance becomes the image again behind a turn.
	Reset Reset
	// Restless says why there is no image and every turn starts the module anew.
	Restless string
}

// Reset is a way to make an instance as new.
type Reset string

// The ways. The pool chooses by the size of the memory.
const (
	ResetNone  Reset = ""      // it is thrown away
	ResetCopy  Reset = "copy"  // pages that differ are copied back
	ResetPages Reset = "pages" // all its pages are given back to the system
	ResetMixed Reset = "mixed" // the few that are used next by copying, the others by pages
)

// Startup starts an instance within some limits and without any grant, as every
// image is made, and says what came of it. It keeps nothing.
func (m *Module) Startup(ctx context.Context, l Limits) (Startup, *Exit) {
	if err := m.engine.enter(); err != nil {
		return Startup{}, hostExit(err)
	}
	defer m.engine.running.Done()
	s := Startup{Restless: m.restless}
	r := newRun(ctx, m, Turn{Limits: l})
	exit := r.fence(func() *Exit {
		if exit := r.admitted(); exit != nil {
			return exit
		}
		if exit := r.fresh(); exit != nil {
			return exit
		}
		s.Memory = int64(r.memory.Size())
		if m.restless != "" {
			return nil
		}
		return s.capture(r)
	})
	return s, exit
}

// capture takes the image of a run's instance, to look at it.
func (s *Startup) capture(r *run) *Exit {
	img, err := capture(r.inst, r.limits.Memory/imageShare, r.module.engine.copies)
	switch {
	case errors.Is(err, errImageSize):
		s.Restless = err.Error()
		return nil
	case err != nil:
		return hostExit(err)
	}
	defer img.close()
	s.Image = int64(len(img.content))
	switch {
	case img.keepsPages(false):
		s.Reset = ResetCopy
	case img.keepsPages(true):
		s.Reset = ResetMixed
	default:
		s.Reset = ResetPages
	}
	return nil
}

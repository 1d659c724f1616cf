package wasm

import (
	"context"
	"errors"
	"skep/host/internal/turn"
)

// Startup describes an instance when its first turn may begin.
type Startup struct {
	Memory int64 // bytes of linear memory
	Image  int64 // bytes of it that the image keeps
	// Reset is how an instance is reset to the image after a turn.
	Reset Reset
	// NoImageReason is why there is no image and every turn starts the module again.
	NoImageReason string
}

// Reset is a way to reset an instance to its image.
type Reset string

// The ways of resetting. The size of the memory decides.
const (
	ResetNone  Reset = ""      // it is closed
	ResetCopy  Reset = "copy"  // pages that differ are copied back
	ResetPages Reset = "pages" // all its pages are given back to the system
	ResetMixed Reset = "mixed" // warm instances by copying, the others by pages
)

// Startup starts an instance within some limits and without any grant, as every
// image is built, and describes it. It keeps nothing.
func (m *Module) Startup(ctx context.Context, l turn.Limits) (Startup, *turn.Exit) {
	if err := m.engine.beginUse(); err != nil {
		return Startup{}, turn.HostExit(err)
	}
	defer m.engine.running.Done()
	s := Startup{NoImageReason: m.noImageReason}
	r := newRun(ctx, m, turn.Turn{Limits: l})
	exit := r.guard(func() *turn.Exit {
		if exit := r.acquireAndAdmit(); exit != nil {
			return exit
		}
		if exit := r.startFresh(); exit != nil {
			return exit
		}
		s.Memory = int64(r.memory.Size())
		if m.noImageReason != "" {
			return nil
		}
		return s.capture(r)
	})
	return s, exit
}

// capture takes the image of a run's instance, to look at it.
func (s *Startup) capture(r *run) *turn.Exit {
	img, err := capture(r.inst, r.limits.Memory/imageShare, r.module.engine.copies)
	switch {
	case errors.Is(err, errImageSize):
		s.NoImageReason = err.Error()
		return nil
	case err != nil:
		return turn.HostExit(err)
	}
	defer img.close()
	s.Image = int64(len(img.content))
	switch {
	case img.resetsByCopy(false):
		s.Reset = ResetCopy
	case img.resetsByCopy(true):
		s.Reset = ResetMixed
	default:
		s.Reset = ResetPages
	}
	return nil
}

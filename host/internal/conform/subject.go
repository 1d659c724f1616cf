package conform

import (
	"context"
	"errors"
	"fmt"

	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
	"skep/host/internal/turn/wasm/binary"
	"skep/spec/conformance"
)

// subject is the module under trial. It is loaded twice, into engines that make
// their instances in different ways, and must not be able to tell them apart.
type subject struct {
	wasm     []byte
	caps     binary.Caps
	admitted *binary.Module
	tries    conformance.Agent

	first, second *wasm.Engine
	module, twin  *wasm.Module

	// usual are the outcomes of the turns as they are, in their order.
	usual []Outcome
	begun *Outcome // of the first turn of all
}

func newSubject(ctx context.Context, src wasm.Source, o wasm.Options) (_ *subject, err error) {
	s := &subject{wasm: src.Wasm, caps: o.Caps}
	if s.caps == (binary.Caps{}) {
		s.caps = binary.DefaultCaps()
	}
	if s.tries, err = conformance.ForAgents(); err != nil {
		return nil, fmt.Errorf("conform: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
		}
	}()
	if s.first, err = wasm.New(ctx, o); err != nil {
		return nil, err
	}
	// Where the first engine resets an instance whose pages it shares with the
	// image, this one makes a new one for every turn, and copies.
	o.CopyImages, o.IdleTotal.Count = true, -1
	if s.second, err = wasm.New(ctx, o); err != nil {
		return nil, err
	}
	if s.module, err = s.first.Load(ctx, src); err != nil {
		return nil, err
	}
	if s.twin, err = s.second.Load(ctx, src); err != nil {
		return nil, err
	}
	s.admitted, err = binary.Admit(src.Wasm, s.caps)
	return s, err
}

func (s *subject) close(ctx context.Context) (err error) {
	for _, e := range []*wasm.Engine{s.first, s.second} {
		if e != nil {
			err = errors.Join(err, e.Close(ctx))
		}
	}
	return err
}

// kind separates conformance guests from all others.
func (s *subject) kind() string {
	if s.module.Descriptor().Name == guestName {
		return KindConformance
	}
	return KindAgent
}

// starts reports whether the module gets as far as its first turn.
func (s *subject) starts(ctx context.Context) bool { return s.beginning(ctx).began }

// beginning is the outcome of the first turn of all, which starts the module.
func (s *subject) beginning(ctx context.Context) Outcome {
	if s.begun == nil {
		o := s.play(ctx, s.module, trial{input: s.tries.Turns[0].Input})
		s.begun = &o
	}
	return *s.begun
}

// outcomes plays all turns as they are.
func (s *subject) outcomes(ctx context.Context) []Outcome {
	if s.usual == nil {
		for _, t := range s.tries.Turns {
			s.usual = append(s.usual, s.play(ctx, s.module, trial{input: t.Input}))
		}
	}
	return s.usual
}

// asks reports whether any turn calls an op.
func (s *subject) asks(ctx context.Context) bool {
	for _, o := range s.outcomes(ctx) {
		if len(o.Ops) > 0 {
			return true
		}
	}
	return false
}

// worse is how a disturbed turn ended, if not well:
// empty for the agent's own end, and for a fault it has anyway.
func (s *subject) worse(ctx context.Context, n int, o Outcome) string {
	usual, budget := s.outcomes(ctx)[n], int(turn.DefaultLimits().HostCalls)
	switch {
	case !usual.own():
		return ""
	case !o.own(), o.badOutput() && !usual.badOutput():
		return o.end()
	case len(o.Ops) >= budget && len(usual.Ops) < budget:
		return fmt.Sprintf("called the host %d times, until it might no more", budget)
	}
	return ""
}

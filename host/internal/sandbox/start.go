package sandbox

import (
	"errors"
	"fmt"

	"skep/abi"
	"skep/host/internal/wasmbin"
)

// start gives the run an instance as it is when a turn may begin: one that waits
// in the pool, one that begins as the image, or one that is started like the
// image itself.
func (r *run) start() *Exit {
	if exit := r.admitted(); exit != nil {
		return exit
	}
	if r.module.restless != "" {
		return r.fresh()
	}
	pool := r.module.engine.pool
	s := pool.shelf(r.module, r.startLimits())
	if i := pool.take(s); i != nil {
		r.adopt(i)
		return nil
	}
	img, exit := r.image(s)
	switch {
	case exit != nil || r.inst != nil: // it made the image, and there is none
		return exit
	case img == nil:
		return r.fresh()
	}
	i, err := r.module.newInstance(r.startLimits(), img)
	if err != nil {
		return hostExit(err)
	}
	if pool.keeps() {
		i.shelf = s
	}
	r.adopt(i)
	pool.count(func(s *PoolStats) { s.Made++ })
	pool.relieve()
	return nil
}

// admitted takes the token and looks whether the module fits its limits.
func (r *run) admitted() *Exit {
	if exit := r.acquire(); exit != nil {
		return exit
	}
	if r.module.minMemory > r.limits.Memory {
		return &Exit{Kind: ExitMemory, Limit: keyMemory, Message: fmt.Sprintf(
			"the module starts with %d bytes of memory, at most %d", r.module.minMemory, r.limits.Memory)}
	}
	return nil
}

// fresh makes an instance from the module's own data, starts and warms it.
func (r *run) fresh() *Exit {
	exit := r.instantiate()
	if exit != nil {
		return exit
	}
	defer func() { r.meter.settle(r.slice) }() // the instance may not live on
	status, exit := r.callStatus(abi.ExportWarm)
	if exit == nil && status != abi.StatusOK && status != abi.StatusNotImplemented {
		exit = r.failed(abi.ExportWarm, status)
	}
	return exit
}

// instantiate makes an instance and runs its start function and _initialize.
func (r *run) instantiate() *Exit {
	i, err := r.module.newInstance(r.startLimits(), nil)
	if err != nil {
		return hostExit(err)
	}
	r.adopt(i)
	r.started = true
	r.module.engine.pool.count(func(s *PoolStats) { s.Fresh++ })
	r.module.engine.pool.relieve()
	if exit := r.copyData(); exit != nil {
		return exit
	}
	if exit := r.callVoid(wasmbin.ExportStart, "start"); exit != nil {
		return exit
	}
	return r.callVoid(abi.ExportInitialize, abi.ExportInitialize)
}

// copyData copies the module's active data segments. One that does not fit is
// a trap, after those before it.
func (r *run) copyData() *Exit {
	for _, s := range r.module.data {
		to, ok := r.view(s.Offset, uint32(len(s.Bytes)))
		if !ok {
			return r.failure("start", fmt.Errorf("data[%d]: out of bounds memory access", s.Index))
		}
		copy(to, s.Bytes)
	}
	return nil
}

// adopt makes an instance the run's own.
func (r *run) adopt(i *instance) {
	r.inst, r.guest, r.memory, r.slice = i, i.guest, i.memory, i.slice
}

// dismiss closes the run's instance.
func (r *run) dismiss() {
	r.inst.close()
	r.inst, r.guest, r.memory, r.slice = nil, nil, nil, nil
}

// image returns the image of a shelf, or nil where there is none. It makes it,
// or waits for another run that does.
func (r *run) image(s *shelf) (*image, *Exit) {
	for {
		m, mine := s.claim()
		if mine {
			return r.makeImage(s, m)
		}
		if exit := r.await(m.done); exit != nil {
			return nil, exit
		}
		switch {
		case m.settled:
			return m.image, nil
		case m.exit != nil && m.exit.repeats():
			return nil, m.exit.clone()
		}
	}
}

// await waits for a making, without the token.
func (r *run) await(done <-chan struct{}) *Exit {
	select {
	case <-done:
		return nil
	default:
	}
	r.token.release()
	select {
	case <-done:
	case <-r.ctx.Done():
	}
	return r.acquire()
}

// makeImage makes an instance and takes its image. Where the module cannot have
// one, the run keeps the instance.
func (r *run) makeImage(s *shelf, m *making) (*image, *Exit) {
	defer s.settle(m)
	if m.exit = r.fresh(); m.exit != nil {
		return nil, m.exit.clone()
	}
	engine := r.module.engine
	img, err := capture(r.inst, r.limits.Memory/imageShare, engine.copies)
	if errors.Is(err, errImageSize) {
		engine.log.Warn("every turn starts the module anew", "module", r.module.digest, "reason", err)
		m.settled = true
		return nil, nil
	}
	if err != nil {
		return nil, hostExit(err)
	}
	s.pool.resident.Add(int64(len(img.content)))
	m.image, m.settled = img, true
	r.dismiss()
	return img, nil
}

// hostExit is the exit of a turn that the host cannot serve.
func hostExit(err error) *Exit { return &Exit{Kind: ExitHost, Message: err.Error(), Cause: err} }

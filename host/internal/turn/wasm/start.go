package wasm

import (
	"errors"
	"fmt"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// start gives the run an instance in which a turn may begin: an idle one of the pool,
// one that begins as the image, or one that is started like the image itself.
func (r *run) start() *turn.Exit {
	if exit := r.acquireAndAdmit(); exit != nil {
		return exit
	}
	if r.module.noImageReason != "" {
		return r.startFresh()
	}
	pools := r.module.engine.pools
	pool := pools.poolOf(r.module, r.startLimits())
	if i := pools.takeIdle(pool); i != nil {
		r.useInstance(i)
		return nil
	}
	img, exit := r.imageFor(pool)
	switch {
	case exit != nil || r.inst != nil: // it started the module, which can have no image
		return exit
	case img == nil:
		return r.startFresh()
	}
	i, err := r.module.newInstance(r.startLimits(), img)
	if err != nil {
		return turn.HostExit(err)
	}
	if pools.keepsIdle() {
		i.pool = pool
	}
	r.useInstance(i)
	pools.updateStats(func(s *PoolStats) { s.FromImage++ })
	pools.relieveMemory()
	return nil
}

// acquireAndAdmit takes the token and checks that the module fits its limits.
func (r *run) acquireAndAdmit() *turn.Exit {
	if exit := r.acquire(); exit != nil {
		return exit
	}
	if r.module.minMemory > r.limits.Memory {
		return &turn.Exit{Kind: turn.ExitMemory, Limit: turn.KeyMemory, Message: fmt.Sprintf(
			"the module starts with %d bytes of memory, at most %d", r.module.minMemory, r.limits.Memory)}
	}
	return nil
}

// startFresh makes an instance from the module's own data, starts and warms it.
func (r *run) startFresh() *turn.Exit {
	exit := r.instantiate()
	if exit != nil {
		return exit
	}
	defer func() { r.meter.updateUsed(r.slice) }() // the instance may be closed
	status, exit := r.callStatus(abi.ExportWarm)
	if exit == nil && status != abi.StatusOK && status != abi.StatusNotImplemented {
		exit = turn.FailedExit(abi.ExportWarm, status, r.output)
	}
	return exit
}

// instantiate makes an instance and runs its start function and _initialize.
func (r *run) instantiate() *turn.Exit {
	i, err := r.module.newInstance(r.startLimits(), nil)
	if err != nil {
		return turn.HostExit(err)
	}
	r.useInstance(i)
	r.started = true
	r.module.engine.pools.updateStats(func(s *PoolStats) { s.Fresh++ })
	r.module.engine.pools.relieveMemory()
	if exit := r.copyData(); exit != nil {
		return exit
	}
	if exit := r.callVoid(binary.ExportStart, "start"); exit != nil {
		return exit
	}
	return r.callVoid(abi.ExportInitialize, abi.ExportInitialize)
}

// copyData copies the module's active data segments. One that does not fit is
// a trap, after those before it.
func (r *run) copyData() *turn.Exit {
	for _, s := range r.module.data {
		to, ok := r.view(s.Offset, uint32(len(s.Bytes)))
		if !ok {
			return r.exitOf("start", fmt.Errorf("data[%d]: out of bounds memory access", s.Index))
		}
		copy(to, s.Bytes)
	}
	return nil
}

// useInstance makes an instance the run's own.
func (r *run) useInstance(i *instance) {
	r.runInstance = runInstance{i, i.guest, i.memory, i.slice}
}

// closeInstance closes the run's instance.
func (r *run) closeInstance() {
	r.inst.close()
	r.runInstance = runInstance{}
}

// imageFor returns the image of a pool, or nil where there is none. It builds it, or
// waits for another run that does.
func (r *run) imageFor(p *instancePool) (*image, *turn.Exit) {
	for {
		build, mine := p.claimBuild()
		if mine {
			return r.buildImage(p, build)
		}
		if exit := r.awaitBuild(build.done); exit != nil {
			return nil, exit
		}
		switch {
		case build.complete:
			return build.image, nil
		case build.exit != nil && build.exit.Kind.Repeats():
			return nil, build.exit.Clone()
		}
	}
}

// awaitBuild waits for a build, without the token.
func (r *run) awaitBuild(done <-chan struct{}) *turn.Exit {
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

// buildImage starts an instance and takes its image. Where the module cannot have
// one, the run keeps the instance.
func (r *run) buildImage(p *instancePool, build *imageBuild) (*image, *turn.Exit) {
	defer p.finishBuild(build)
	if build.exit = r.startFresh(); build.exit != nil {
		return nil, build.exit.Clone()
	}
	engine := r.module.engine
	img, err := capture(r.inst, r.limits.Memory/imageShare, engine.copies)
	if errors.Is(err, errImageSize) {
		engine.log.Warn("every turn starts the module anew", "module", r.module.digest, "reason", err)
		build.complete = true
		return nil, nil
	}
	if err != nil {
		return nil, turn.HostExit(err)
	}
	p.set.resident.Add(int64(len(img.content)))
	build.image, build.complete = img, true
	r.closeInstance()
	return img, nil
}

package wasm

import "skep/host/internal/turn"

// instancePool holds the image and the idle instances of one module and rewriter
// within the same limits of the start. The lock of the set guards its fields.
type instancePool struct {
	set   *poolSet
	key   poolKey
	build *imageBuild
	idle  []*instance // the latest at the end, warm ones behind all others
	warm  int         // warm ones that are idle or about to be
}

// idleWarm counts the warm ones that are idle.
func (p *instancePool) idleWarm() (n int) {
	for n < len(p.idle) && p.idle[len(p.idle)-1-n].warm {
		n++
	}
	return n
}

// imageBuild is the build of a pool's image, by one run while others wait. The fields
// below done are set before it is closed.
type imageBuild struct {
	done chan struct{}
	// image is nil where instances begin from the module's own data.
	image *image
	// complete is false when the build failed and another run may try. The exit is
	// set if that run may fail in the same way.
	complete bool
	exit     *turn.Exit
}

// claimBuild returns the latest build, and whether the caller must do it.
func (p *instancePool) claimBuild() (build *imageBuild, mine bool) {
	p.set.mu.Lock()
	defer p.set.mu.Unlock()
	if p.build == nil {
		p.build, mine = &imageBuild{done: make(chan struct{})}, true
	}
	return p.build, mine
}

// finishBuild ends a build. A failed one is removed, so that the next run tries.
func (p *instancePool) finishBuild(build *imageBuild) {
	p.set.mu.Lock()
	if !build.complete {
		p.build = nil
	}
	if build.image != nil {
		p.set.stats.Images++
	}
	p.set.mu.Unlock()
	close(build.done)
}

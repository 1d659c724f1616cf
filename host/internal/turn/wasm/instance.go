package wasm

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"skep/host/internal/turn/wasm/binary"
)

// instance is one live instantiation of a module. It serves one run at a time;
// between runs the pool holds it.
type instance struct {
	module  *Module
	pool    *instancePool // which keeps it between runs; nil: no pool
	image   *image        // what it began as; nil: the module's own data
	limits  startLimits
	linear  *linearMemory
	guest   api.Module
	memory  api.Memory
	slice   api.MutableGlobal
	stack   api.MutableGlobal
	globals []api.MutableGlobal // the guest's own

	// While it is idle; the lock of the pool set guards both.
	warm    bool // it has kept its pages
	entries [2]idleEntry
}

// newInstance instantiates a module. No code of the guest has run then:
// the memory holds an image, or zeros. An error is the host's.
func (m *Module) newInstance(limits startLimits, img *image) (_ *instance, err error) {
	i := &instance{module: m, image: img, limits: limits}
	done := false
	defer func() {
		if !done { // an error, or a panic of the engine
			i.close()
		}
	}()
	i.linear = newLinearMemory(min(m.maxMemory, limits.Memory/page*page), m.overhead, &m.engine.pools.resident)
	if err := i.prepare(); err != nil {
		return nil, err
	}
	ctx := experimental.WithMemoryAllocator(context.Background(), i)
	if i.guest, err = m.engine.runtime.InstantiateModule(ctx, m.compiled, m.engine.instances); err != nil {
		return nil, fmt.Errorf("instantiate: %w", err)
	}
	i.memory = i.guest.Memory()
	i.slice, i.stack = i.global(binary.GlobalSlice), i.global(binary.GlobalStack)
	for _, name := range m.globals {
		i.globals = append(i.globals, i.global(name))
	}
	i.setGlobals()
	if img != nil && !i.grow(img.size) {
		return nil, errors.New("the memory does not grow to the size of its image")
	}
	done = true
	return i, nil
}

// prepare gives the memory its content before wazero sees it.
func (i *instance) prepare() error {
	if i.image != nil {
		return i.image.fill(i.linear)
	}
	if i.module.minMemory > int64(i.linear.space.size()) || i.linear.Reallocate(uint64(i.module.minMemory)) == nil {
		return fmt.Errorf("the system has no %d bytes for an instance", i.module.minMemory)
	}
	return nil
}

// Allocate hands the prepared memory to wazero.
func (i *instance) Allocate(_, _ uint64) experimental.LinearMemory { return i.linear }

func (i *instance) global(name string) api.MutableGlobal {
	return i.guest.ExportedGlobal(name).(api.MutableGlobal)
}

// grow makes wazero use the given size of the prepared memory.
func (i *instance) grow(size int64) bool {
	_, ok := i.memory.Grow(uint32(size/page) - i.memory.Size()/page)
	return ok && int64(i.memory.Size()) == size
}

// setGlobals sets the globals of the image and the counter of the stack. The meter
// sets the counter of the fuel.
func (i *instance) setGlobals() {
	i.stack.Set(uint64(i.limits.Stack))
	if i.image == nil {
		return
	}
	for n, g := range i.globals {
		g.Set(i.image.globals[n])
	}
}

// restore resets the instance to its image. It reports false when it cannot: a
// memory never shrinks. A warm one keeps its pages.
func (i *instance) restore(warm bool) bool {
	if i.image == nil || int64(i.memory.Size()) != i.image.size {
		return false
	}
	if err := i.image.restore(i.linear, warm); err != nil {
		return false
	}
	i.setGlobals()
	return true
}

// close frees the instance, which must not be used again.
func (i *instance) close() {
	if i.guest != nil { // a nil interface where instantiating failed
		_ = i.guest.Close(context.Background()) // nothing to report: no files, no listeners
	}
	i.linear.Free() // also where wazero never saw it
}

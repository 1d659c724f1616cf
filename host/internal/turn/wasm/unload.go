package wasm

import (
	"context"
	"errors"
)

// moduleUse counts the turns of a module. The engine's lock guards it.
type moduleUse struct {
	turns    int
	unloaded bool
}

// errUnloaded is the error of a module that was unloaded.
var errUnloaded = errors.New("the module was unloaded")

// beginTurn counts a turn, unless the module is gone or its engine closed.
func (m *Module) beginTurn() error {
	if err := m.engine.beginUse(); err != nil {
		return err
	}
	m.engine.mu.Lock()
	defer m.engine.mu.Unlock()
	if m.use.unloaded {
		m.engine.running.Done()
		return errUnloaded
	}
	m.use.turns++
	return nil
}

func (m *Module) endTurn() {
	m.engine.mu.Lock()
	m.use.turns--
	m.engine.mu.Unlock()
	m.engine.running.Done()
}

// Unload frees a module, its images and its idle instances, unless a turn runs on
// it or it is being loaded: then it reports false and has done nothing. Later turns
// of the module fail; [Engine.Load] loads it again.
func (e *Engine) Unload(ctx context.Context, digest string) (bool, error) {
	if err := e.beginUse(); err != nil {
		return false, err
	}
	defer e.running.Done()
	s := e.slotOf(digest)
	if !s.mu.TryLock() {
		return false, nil
	}
	defer s.mu.Unlock()
	m := s.module
	if m == nil {
		return true, nil
	}
	e.mu.Lock()
	busy := m.use.turns > 0
	m.use.unloaded = m.use.unloaded || !busy
	e.mu.Unlock()
	if busy {
		return false, nil
	}
	s.module = nil
	e.pools.dropModule(digest)
	return true, m.compiled.Close(ctx)
}

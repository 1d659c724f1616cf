package sandbox

import (
	"context"
	"errors"
)

// use says whether a module may go. It is under the engine's lock.
type use struct {
	turns int
	gone  bool
}

// errUnloaded is what a module answers that is not there any more.
var errUnloaded = errors.New("the module was unloaded")

// begin counts a turn in, unless the module is gone or its engine closed.
func (m *Module) begin() error {
	if err := m.engine.enter(); err != nil {
		return err
	}
	m.engine.mu.Lock()
	defer m.engine.mu.Unlock()
	if m.use.gone {
		m.engine.running.Done()
		return errUnloaded
	}
	m.use.turns++
	return nil
}

func (m *Module) end() {
	m.engine.mu.Lock()
	m.use.turns--
	m.engine.mu.Unlock()
	m.engine.running.Done()
}

// Unload frees a module, its images and its idle instances, unless a turn runs on
// it or it is being loaded: then it reports false and has done nothing. Whoever
// holds it still gets an error from it; [Engine.Load] makes it anew.
func (e *Engine) Unload(ctx context.Context, digest string) (bool, error) {
	if err := e.enter(); err != nil {
		return false, err
	}
	defer e.running.Done()
	s := e.slot(digest)
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
	m.use.gone = m.use.gone || !busy
	e.mu.Unlock()
	if busy {
		return false, nil
	}
	s.module = nil
	e.pool.drop(digest)
	return true, m.compiled.Close(ctx)
}

// drop gives up the instances and images of a module on which nothing runs.
func (p *pool) drop(digest string) {
	p.mu.Lock()
	var victims []*instance
	var images []*image
	for q := p.modules[digest]; q != nil && q.Len() > 0; {
		i := q.Back().Value.(*instance)
		p.remove(i)
		p.stats.Evicted++
		victims = append(victims, i)
	}
	delete(p.modules, digest)
	for key, s := range p.shelves {
		if key.digest != digest {
			continue
		}
		if s.making != nil && s.making.image != nil {
			images = append(images, s.making.image)
			p.stats.Images--
		}
		delete(p.shelves, key)
	}
	p.mu.Unlock()
	closeAll(victims)
	for _, img := range images {
		p.resident.Add(-int64(len(img.content)))
		img.close()
	}
}

package sandbox

import (
	"cmp"
	"container/list"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"skep/host/internal/wasmbin"
)

// IdleLimits bound the instances that wait for their next turn.
type IdleLimits struct {
	Count int
	Bytes int64 // as estimated
}

// Defaults of the pool's bounds.
const (
	defaultIdleModule      = 64
	defaultIdleModuleBytes = 64 << 20
	defaultIdleTotal       = 1024
	defaultIdleTotalBytes  = 256 << 20
	defaultMemory          = 1 << 30
)

// warmShare is how many warm instances a shelf keeps for each processor. A turn
// holds its instance also while it waits in an op or for its turn to compute, so
// more are in use than compute. Each keeps the pages it has written, some hundred
// in std Go.
const warmShare = 3

func (l IdleLimits) or(count int, bytes int64) IdleLimits {
	return IdleLimits{Count: cmp.Or(l.Count, count), Bytes: cmp.Or(l.Bytes, bytes)}
}

// pool holds the images of an engine and its idle instances, each on the shelf
// of its kind. Its lock is a leaf: nothing of wazero or the system is called
// under it.
type pool struct {
	perModule, total IdleLimits
	budget           int64
	warm             int // warm instances on a shelf
	// resident is what the memories of all instances and images may take: of
	// one that runs its whole size, of one that is idle an estimate.
	resident atomic.Int64

	mu      sync.Mutex
	closed  bool
	shelves map[shelfKey]*shelf
	modules map[string]*queue // idle ones, by digest
	all     queue
	stats   PoolStats
}

// PoolStats count what became of the instances of an engine.
type PoolStats struct {
	Idle      int   // instances that wait
	IdleBytes int64 // and what they are estimated to take
	Resident  int64 // what all instances and images may take, at most
	Images    int

	Made    uint64 // instances begun from an image
	Fresh   uint64 // instances begun from the module's own data
	Reused  uint64 // turns that got one that waited
	Parked  uint64 // instances that went to wait
	Dropped uint64 // instances that did not: trap, kill, failure, growth
	Evicted uint64 // instances that waited in vain
}

// shelfKey is what instances must have in common to stand in for each other.
type shelfKey struct {
	digest, rewriter string
	limits           startLimits
}

// queue is a list of idle instances, the latest first.
type queue struct {
	list.List
	bytes int64
}

// place is where an instance stands in a queue.
type place struct {
	queue   *queue
	element *list.Element
}

func newPool(o Options) *pool {
	return &pool{
		perModule: o.IdlePerModule.or(defaultIdleModule, defaultIdleModuleBytes),
		total:     o.IdleTotal.or(defaultIdleTotal, defaultIdleTotalBytes),
		budget:    cmp.Or(o.Memory, defaultMemory),
		warm:      warmShare * runtime.GOMAXPROCS(0),
		shelves:   map[shelfKey]*shelf{},
		modules:   map[string]*queue{},
	}
}

// shelf returns the shelf of a module's instances within some limits.
func (p *pool) shelf(m *Module, limits startLimits) *shelf {
	key := shelfKey{m.digest, wasmbin.Version, limits}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shelves[key]
	if s == nil {
		s = &shelf{pool: p, key: key}
		p.shelves[key] = s
		if p.modules[m.digest] == nil {
			p.modules[m.digest] = &queue{}
		}
	}
	return s
}

// take returns a warm instance, or else the one that has waited for the shortest
// time, or nil.
func (p *pool) take(s *shelf) *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(s.idle) == 0 {
		return nil
	}
	i := s.idle[len(s.idle)-1]
	p.remove(i)
	i.linear.count(i.image.size)
	p.stats.Reused++
	return i
}

// park makes an instance as new and takes it back, or reports false when it
// cannot be made as new. The oldest ones are given up where there are too many.
func (p *pool) park(i *instance) bool {
	warm := p.claimWarm(i.shelf)
	if !i.restore(warm) {
		if warm {
			p.disclaimWarm(i.shelf)
		}
		return false
	}
	i.linear.count(i.image.idleBytes(warm))
	p.mu.Lock()
	p.stats.Parked++
	p.add(i, warm)
	victims := p.excess(p.modules[i.module.digest])
	p.mu.Unlock()
	closeAll(victims)
	return true
}

// claimWarm counts an instance among the warm ones of its shelf, if there is
// room: the next turns will use these.
func (p *pool) claimWarm(s *shelf) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.warm >= p.warm {
		return false
	}
	s.warm++
	return true
}

func (p *pool) disclaimWarm(s *shelf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.warm--
}

// keeps reports whether instances may wait at all.
func (p *pool) keeps() bool { return p.perModule.Count > 0 && p.total.Count > 0 }

// relieve gives up idle instances while memory is short.
func (p *pool) relieve() {
	if p.resident.Load() <= p.budget {
		return
	}
	p.mu.Lock()
	victims := p.excess(nil)
	p.mu.Unlock()
	closeAll(victims)
}

// excess takes out the oldest instances, those of one module first, until all
// bounds are kept. The caller closes them.
func (p *pool) excess(module *queue) (victims []*instance) {
	pressure := p.resident.Load() - p.budget
	evict := func(q *queue) {
		i := q.Back().Value.(*instance)
		pressure -= i.linear.counted
		p.remove(i)
		p.stats.Evicted++
		victims = append(victims, i)
	}
	for module != nil && module.over(p.perModule) {
		evict(module)
	}
	for p.all.over(p.total) || p.all.Len() > 0 && (pressure > 0 || p.closed) {
		evict(&p.all)
	}
	return victims
}

func closeAll(list []*instance) {
	for _, i := range list {
		i.close()
	}
}

func (q *queue) over(l IdleLimits) bool {
	return q.Len() > 0 && (q.Len() > l.Count || q.bytes > l.Bytes)
}

func (p *pool) add(i *instance, warm bool) {
	s := i.shelf
	i.warm = warm
	if warm {
		s.idle = append(s.idle, i)
	} else {
		s.idle = slices.Insert(s.idle, len(s.idle)-s.idleWarm(), i)
	}
	for n, q := range []*queue{&p.all, p.modules[i.module.digest]} {
		i.places[n] = place{q, q.PushFront(i)}
		q.bytes += i.linear.counted
	}
}

func (p *pool) remove(i *instance) {
	s := i.shelf
	n := slices.Index(s.idle, i)
	s.idle = slices.Delete(s.idle, n, n+1)
	if i.warm {
		s.warm--
		i.warm = false
	}
	for _, at := range i.places {
		at.queue.Remove(at.element)
		at.queue.bytes -= i.linear.counted
	}
	i.places = [2]place{}
}

// count changes the statistics.
func (p *pool) count(change func(s *PoolStats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.stats)
}

// Pool reports what became of the engine's instances so far.
func (e *Engine) Pool() PoolStats {
	p := e.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Idle, s.IdleBytes, s.Resident = p.all.Len(), p.all.bytes, p.resident.Load()
	return s
}

// close frees all idle instances and images. No turn runs any more.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	victims := p.excess(nil)
	var images []*image
	for _, s := range p.shelves {
		if s.making != nil && s.making.image != nil {
			images = append(images, s.making.image)
		}
	}
	clear(p.shelves)
	p.mu.Unlock()
	closeAll(victims)
	for _, img := range images {
		p.resident.Add(-int64(len(img.content)))
		img.close()
	}
}

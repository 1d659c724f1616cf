package wasm

import (
	"cmp"
	"container/list"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"skep/host/internal/turn/wasm/binary"
)

// IdleLimits bound the instances that wait for their next turn.
type IdleLimits struct {
	Count int
	Bytes int64 // as estimated
}

// Defaults of the pool set's bounds.
const (
	defaultIdleModule      = 64
	defaultIdleModuleBytes = 64 << 20
	defaultIdleTotal       = 1024
	defaultIdleTotalBytes  = 256 << 20
	defaultMemory          = 1 << 30
)

// warmShare is the number of warm instances a pool keeps for each processor. A turn
// holds its instance also while it waits in an op or for its turn to compute, so
// more are in use than compute. Each keeps the pages it has written, some hundred
// in std Go.
const warmShare = 3

func (l IdleLimits) or(count int, bytes int64) IdleLimits {
	return IdleLimits{Count: cmp.Or(l.Count, count), Bytes: cmp.Or(l.Bytes, bytes)}
}

// poolSet holds the instance pools of an engine. Its lock is a leaf: no function of
// wazero or the system is called under it.
type poolSet struct {
	perModule, total IdleLimits
	budget           int64
	maxWarm          int // of one pool
	// resident is the bytes that all instances and images may take: the whole
	// memory of a running instance, an estimate for an idle one.
	resident atomic.Int64

	mu      sync.Mutex
	closed  bool
	pools   map[poolKey]*instancePool
	modules map[string]*idleList // idle ones, by digest
	all     idleList
	stats   PoolStats
}

// PoolStats count what became of the instances of an engine.
type PoolStats struct {
	Idle      int   // idle instances
	IdleBytes int64 // bytes they are estimated to take
	Resident  int64 // bytes that all instances and images take at most
	Images    int

	FromImage uint64 // instances begun from an image
	Fresh     uint64 // instances begun from the module's own data
	Reused    uint64 // turns that got an idle instance
	Recycled  uint64 // instances that became idle
	Dropped   uint64 // instances closed after a trap, kill, failure or growth
	Evicted   uint64 // idle instances closed for a bound
}

// poolKey identifies the instances that can replace each other.
type poolKey struct {
	digest, rewriter string
	limits           startLimits
}

// idleList is a list of idle instances, the latest first.
type idleList struct {
	list.List
	bytes int64
}

// idleEntry is an instance's entry in an idle list.
type idleEntry struct {
	list    *idleList
	element *list.Element
}

func newPoolSet(o Options) *poolSet {
	return &poolSet{
		perModule: o.IdlePerModule.or(defaultIdleModule, defaultIdleModuleBytes),
		total:     o.IdleTotal.or(defaultIdleTotal, defaultIdleTotalBytes),
		budget:    cmp.Or(o.Memory, defaultMemory),
		maxWarm:   warmShare * runtime.GOMAXPROCS(0),
		pools:     map[poolKey]*instancePool{},
		modules:   map[string]*idleList{},
	}
}

// poolOf returns the pool of a module's instances within some limits.
func (p *poolSet) poolOf(m *Module, limits startLimits) *instancePool {
	key := poolKey{m.digest, binary.Version, limits}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.pools[key]
	if s == nil {
		s = &instancePool{set: p, key: key}
		p.pools[key] = s
		if p.modules[m.digest] == nil {
			p.modules[m.digest] = &idleList{}
		}
	}
	return s
}

// takeIdle returns a warm instance, or else the one that became idle last, or
// nil.
func (p *poolSet) takeIdle(s *instancePool) *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(s.idle) == 0 {
		return nil
	}
	i := s.idle[len(s.idle)-1]
	p.removeIdle(i)
	i.linear.setCounted(i.image.size)
	p.stats.Reused++
	return i
}

// recycle resets an instance to its image and makes it idle. It reports false when
// the instance cannot be reset. Where too many are idle the oldest are closed.
func (p *poolSet) recycle(i *instance) bool {
	warm := p.reserveWarm(i.pool)
	if !i.restore(warm) {
		if warm {
			p.unreserveWarm(i.pool)
		}
		return false
	}
	i.linear.setCounted(i.image.idleBytes(warm))
	p.mu.Lock()
	p.stats.Recycled++
	p.addIdle(i, warm)
	victims := p.removeExcess(p.modules[i.module.digest])
	p.mu.Unlock()
	p.closeAll(victims, nil)
	return true
}

// reserveWarm counts an instance among the warm ones of its pool, up to maxWarm: the
// next turns will use these.
func (p *poolSet) reserveWarm(s *instancePool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.warm >= p.maxWarm {
		return false
	}
	s.warm++
	return true
}

func (p *poolSet) unreserveWarm(s *instancePool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.warm--
}

// keepsIdle reports whether any instance may be idle.
func (p *poolSet) keepsIdle() bool { return p.perModule.Count > 0 && p.total.Count > 0 }

// relieveMemory closes idle instances while memory is short.
func (p *poolSet) relieveMemory() {
	if p.resident.Load() <= p.budget {
		return
	}
	p.mu.Lock()
	victims := p.removeExcess(nil)
	p.mu.Unlock()
	p.closeAll(victims, nil)
}

// removeExcess removes the oldest instances, of one module first, until all bounds
// are kept. The caller closes them.
func (p *poolSet) removeExcess(module *idleList) (victims []*instance) {
	for module != nil && module.exceeds(p.perModule) {
		victims = append(victims, p.evict(module))
	}
	for p.all.exceeds(p.total) || p.all.Len() > 0 && (p.resident.Load() > p.budget || p.closed) {
		victims = append(victims, p.evict(&p.all))
	}
	return victims
}

func (q *idleList) exceeds(l IdleLimits) bool {
	return q.Len() > 0 && (q.Len() > l.Count || q.bytes > l.Bytes)
}

func (p *poolSet) addIdle(i *instance, warm bool) {
	s := i.pool
	i.warm = warm
	if warm {
		s.idle = append(s.idle, i)
	} else {
		s.idle = slices.Insert(s.idle, len(s.idle)-s.idleWarm(), i)
	}
	for n, q := range []*idleList{&p.all, p.modules[i.module.digest]} {
		i.entries[n] = idleEntry{q, q.PushFront(i)}
		q.bytes += i.linear.counted
	}
}

func (p *poolSet) removeIdle(i *instance) {
	s := i.pool
	n := slices.Index(s.idle, i)
	s.idle = slices.Delete(s.idle, n, n+1)
	if i.warm {
		s.warm--
		i.warm = false
	}
	for _, at := range i.entries {
		at.list.Remove(at.element)
		at.list.bytes -= i.linear.counted
	}
	i.entries = [2]idleEntry{}
}

// updateStats changes the statistics.
func (p *poolSet) updateStats(change func(s *PoolStats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.stats)
}

// Pool returns the statistics of the engine's instances.
func (e *Engine) Pool() PoolStats {
	p := e.pools
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Idle, s.IdleBytes, s.Resident = p.all.Len(), p.all.bytes, p.resident.Load()
	return s
}

// close frees all idle instances and images. No turn runs any more.
func (p *poolSet) close() {
	p.mu.Lock()
	p.closed = true
	victims := p.removeExcess(nil)
	images := p.removePools(func(poolKey) bool { return true })
	p.mu.Unlock()
	p.closeAll(victims, images)
}

// dropModule closes the instances and images of a module on which nothing runs.
func (p *poolSet) dropModule(digest string) {
	p.mu.Lock()
	var victims []*instance
	for q := p.modules[digest]; q != nil && q.Len() > 0; {
		victims = append(victims, p.evict(q))
	}
	delete(p.modules, digest)
	images := p.removePools(func(key poolKey) bool { return key.digest == digest })
	p.stats.Images -= len(images)
	p.mu.Unlock()
	p.closeAll(victims, images)
}

// removePools removes the pools whose keys match, and returns their images.
func (p *poolSet) removePools(match func(poolKey) bool) (images []*image) {
	for key, pool := range p.pools {
		if !match(key) {
			continue
		}
		if pool.build != nil && pool.build.image != nil {
			images = append(images, pool.build.image)
		}
		delete(p.pools, key)
	}
	return images
}

// evict removes the oldest instance of a list that is not empty. It is counted no more,
// though it is closed later: another turn that ends meanwhile would evict as many again.
func (p *poolSet) evict(q *idleList) *instance {
	i := q.Back().Value.(*instance)
	p.removeIdle(i)
	i.linear.uncount()
	p.stats.Evicted++
	return i
}

// closeAll closes instances and images that were removed.
func (p *poolSet) closeAll(instances []*instance, images []*image) {
	for _, i := range instances {
		i.close()
	}
	for _, img := range images {
		p.resident.Add(-int64(len(img.content)))
		img.close()
	}
}

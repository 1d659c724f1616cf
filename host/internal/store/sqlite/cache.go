package sqlite

// cache remembers between limit and 2*limit of the entries used last. It
// forgets by generations, which needs no list and no clock. Only the writer's
// goroutine uses it.
type cache[K comparable, V any] struct {
	limit      int
	young, old map[K]V
}

func newCache[K comparable, V any](limit int) cache[K, V] {
	return cache[K, V]{limit: limit, young: make(map[K]V)}
}

func (c *cache[K, V]) get(k K) (V, bool) {
	if v, ok := c.young[k]; ok {
		return v, true
	}
	v, ok := c.old[k]
	if ok {
		c.put(k, v)
	}
	return v, ok
}

func (c *cache[K, V]) put(k K, v V) {
	if len(c.young) >= c.limit {
		c.old, c.young = c.young, make(map[K]V)
	}
	c.young[k] = v
}

func (c *cache[K, V]) clear() {
	c.old, c.young = nil, make(map[K]V)
}

package rest

import (
	"net/http"
	"sync"
)

// crowd bounds the streams that are open, in all and of one principal. Zero means
// no limit.
type crowd struct {
	most, mostEach int

	mu   sync.Mutex
	open int
	each map[string]int
}

func newCrowd(most, mostEach int) *crowd {
	return &crowd{most: most, mostEach: mostEach, each: map[string]int{}}
}

// comeAgain is what a caller is told who finds no room, in seconds.
const comeAgain = 5

// enter takes a place for a stream, or says why there is none. leave may be called
// more than once.
func (c *crowd) enter(who string) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mostEach > 0 && c.each[who] >= c.mostEach:
		f := newFault(http.StatusTooManyRequests, "you have %d event streams open; close one, or raise [server] max_streams_per_principal", c.mostEach)
		f.retry = comeAgain
		return nil, f
	case c.most > 0 && c.open >= c.most:
		f := newFault(http.StatusServiceUnavailable, "%d event streams are open; come again later, or raise [server] max_streams", c.most)
		f.retry = comeAgain
		return nil, f
	}
	c.open++
	c.each[who]++
	return sync.OnceFunc(func() { c.leave(who) }), nil
}

func (c *crowd) leave(who string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.each[who]--; c.each[who] == 0 {
		delete(c.each, who)
	}
}

// count is how many are open.
func (c *crowd) count() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.open)
}

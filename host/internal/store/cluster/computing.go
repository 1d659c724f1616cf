package cluster

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"
)

// RunSet keeps what the host does on its own disk. Its numbers name pieces of work under way.
type RunSet interface {
	Begin(id ID) (number int)
	Computing(number int)
	Waiting(number int)
	End(id ID, number int)
	Stop(id ID, number int)
	Forget(id ID)
}

// Computing is a RunSet that the other hosts see as well, once a piece of work has computed for
// publishAfter. It is safe for concurrent use and never fails.
type Computing struct {
	RunSet
	member *Member
	life   []byte
	// wake has a value when there may be something to publish.
	wake chan struct{}

	mu sync.Mutex
	// ids are all work under way by number, bursts how long it has computed that does.
	ids    map[int]ID
	bursts map[int]burst
	// ended had deaths that are to be dropped.
	ended []ID
}

// burst is a time in which work computes, with pauses shorter than sameBurst: a turn lays its token
// down every millisecond, and others may take it.
type burst struct {
	begin, last time.Time
	paused      bool
}

const sameBurst = 50 * time.Millisecond

// publishAfter is how long work computes before the others see it: nearly all of it is done before,
// and costs no write. What computes for longer than publishAgain is written again: a server that was
// killed has forgotten it. A write that failed has the same pause.
const (
	publishAfter = 5 * time.Millisecond
	publishAgain = time.Second
)

// Share makes a set that the other hosts see, of one of this host alone. The life is the host's,
// since it was started.
func (m *Member) Share(set RunSet, life []byte) *Computing {
	m.computing = &Computing{RunSet: set, member: m, life: life, wake: make(chan struct{}, 1), ids: map[int]ID{}, bursts: map[int]burst{}}
	return m.computing
}

// Suspects returns none: [Member.Deaths] has all hosts'.
func (c *Computing) Suspects() map[ID]int { return nil }

// Begin adds a piece of work that waits.
func (c *Computing) Begin(id ID) (number int) {
	number = c.RunSet.Begin(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids[number] = id
	return number
}

// Computing marks work as computing, Waiting as waiting.
func (c *Computing) Computing(number int) {
	c.RunSet.Computing(number)
	c.mu.Lock()
	now := time.Now()
	b, ok := c.bursts[number]
	if !ok || b.paused && now.Sub(b.last) > sameBurst {
		b.begin = now
	}
	b.paused = false
	c.bursts[number] = b
	c.mu.Unlock()
	c.notify()
}

// Waiting is the opposite of Computing.
func (c *Computing) Waiting(number int) {
	c.RunSet.Waiting(number)
	c.mu.Lock()
	if b, ok := c.bursts[number]; ok {
		b.paused, b.last = true, time.Now()
		c.bursts[number] = b
	}
	c.mu.Unlock()
	c.notify()
}

func (c *Computing) notify() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// End removes work that is done, with the deaths that it was blamed for.
func (c *Computing) End(id ID, number int) {
	c.remove(number)
	c.RunSet.End(id, number)
	c.Forget(id)
}

// Stop removes work that another host, or a later one, does again.
func (c *Computing) Stop(id ID, number int) {
	c.remove(number)
	c.RunSet.Stop(id, number)
}

// Forget drops the deaths that work was blamed for.
func (c *Computing) Forget(id ID) {
	c.RunSet.Forget(id)
	if _, blamed := c.member.Deaths()[id]; !blamed {
		return
	}
	c.mu.Lock()
	c.ended = append(c.ended, id)
	c.mu.Unlock()
	c.notify()
}

func (c *Computing) remove(number int) {
	c.mu.Lock()
	delete(c.ids, number)
	delete(c.bursts, number)
	c.mu.Unlock()
	c.notify()
}

// long returns the work that has computed for publishAfter, in order, and whether that may change
// by the time alone.
func (c *Computing) long() (list []ID, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for number, b := range c.bursts {
		end := now
		if b.paused {
			end = b.last
		}
		if now.Sub(end) > sameBurst {
			delete(c.bursts, number)
			continue
		}
		long := end.Sub(b.begin) >= publishAfter
		if long {
			list = append(list, c.ids[number])
		}
		more = more || b.paused || !long
	}
	slices.SortFunc(list, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
	return list, more
}

// publishAll publishes what changes until ctx ends.
func (c *Computing) publishAll(ctx context.Context) {
	var last []ID
	pause, known := publishAfter, true
	refresh := time.NewTicker(publishAgain)
	defer refresh.Stop()
	for {
		again := false
		select {
		case <-c.wake:
		case <-refresh.C:
			again = true
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		list, more := c.long()
		if more {
			c.notify()
		}
		changed := !known || !slices.Equal(last, list) || again && len(list) > 0
		if err := c.publish(ctx, changed, list); err != nil {
			if ctx.Err() == nil {
				c.member.opts.Logger.Warn("the other hosts do not see which turns compute here", "err", err)
			}
			pause, known = publishAgain, false // it may have been written
			c.notify()
			continue
		}
		last, pause, known = list, publishAfter, true
	}
}

// publishWork replaces what a host computes, unless it is dead: that has been noted.
const publishWork = `INSERT INTO computing SELECT $1::bigint, $2::bytea, $3::text, $4::bytea[] WHERE EXISTS (SELECT 1 FROM hosts WHERE hid = $1 AND NOT dead)
	ON CONFLICT (hid) DO UPDATE SET work = excluded.work`

// publish writes what computes, if that has changed, and drops the deaths of work that has ended.
func (c *Computing) publish(ctx context.Context, changed bool, list []ID) error {
	m := c.member
	if changed {
		if err := m.work.exec(ctx, publishWork, m.opts.HID, c.life, m.opts.Address, toBytes(list)); err != nil {
			return err
		}
	}
	c.mu.Lock()
	ended := c.ended
	c.mu.Unlock()
	if len(ended) == 0 {
		return nil
	}
	if err := m.work.exec(ctx, "DELETE FROM deaths WHERE work = ANY($1)", toBytes(ended)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = c.ended[len(ended):]
	return nil
}

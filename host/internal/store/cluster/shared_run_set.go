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

// SharedRunSet is a RunSet that the other hosts see as well, once a piece of work has computed for
// publishAfter. It is safe for concurrent use and never fails.
type SharedRunSet struct {
	RunSet
	member *Member
	life   []byte
	// wake has a value when there may be something to publish.
	wake chan struct{}

	mu sync.Mutex
	// ids are all work under way by number, bursts how long it has computed that does.
	ids    map[int]ID
	bursts map[int]burst
	// ended had deaths that it is not to blame for.
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
func (m *Member) Share(set RunSet, life []byte) *SharedRunSet {
	m.runSet = &SharedRunSet{RunSet: set, member: m, life: life, wake: make(chan struct{}, 1), ids: map[int]ID{}, bursts: map[int]burst{}}
	return m.runSet
}

// Suspects returns none: [Member.Deaths] has all hosts'.
func (s *SharedRunSet) Suspects() map[ID]int { return nil }

// Begin adds a piece of work that waits.
func (s *SharedRunSet) Begin(id ID) (number int) {
	number = s.RunSet.Begin(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[number] = id
	return number
}

// Computing marks work as computing, Waiting as waiting.
func (s *SharedRunSet) Computing(number int) {
	s.RunSet.Computing(number)
	s.mu.Lock()
	now := time.Now()
	b, ok := s.bursts[number]
	if !ok || b.paused && now.Sub(b.last) > sameBurst {
		b.begin = now
	}
	b.paused = false
	s.bursts[number] = b
	s.mu.Unlock()
	s.notify()
}

// Waiting is the opposite of Computing.
func (s *SharedRunSet) Waiting(number int) {
	s.RunSet.Waiting(number)
	s.mu.Lock()
	if b, ok := s.bursts[number]; ok {
		b.paused, b.last = true, time.Now()
		s.bursts[number] = b
	}
	s.mu.Unlock()
	s.notify()
}

func (s *SharedRunSet) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// End removes work that is done, with the deaths that it was blamed for.
func (s *SharedRunSet) End(id ID, number int) {
	s.remove(number)
	s.RunSet.End(id, number)
	s.Forget(id)
}

// Stop removes work that another host, or a later one, does again.
func (s *SharedRunSet) Stop(id ID, number int) {
	s.remove(number)
	s.RunSet.Stop(id, number)
}

// Forget drops the deaths that work was blamed for.
func (s *SharedRunSet) Forget(id ID) {
	s.RunSet.Forget(id)
	if _, blamed := s.member.Deaths()[id]; !blamed {
		return
	}
	s.mu.Lock()
	s.ended = append(s.ended, id)
	s.mu.Unlock()
	s.notify()
}

func (s *SharedRunSet) remove(number int) {
	s.mu.Lock()
	delete(s.ids, number)
	delete(s.bursts, number)
	s.mu.Unlock()
	s.notify()
}

// long returns the work that has computed for publishAfter, in order, and whether that may change
// by the time alone.
func (s *SharedRunSet) long() (list []ID, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for number, b := range s.bursts {
		end := now
		if b.paused {
			end = b.last
		}
		if now.Sub(end) > sameBurst {
			delete(s.bursts, number)
			continue
		}
		long := end.Sub(b.begin) >= publishAfter
		if long {
			list = append(list, s.ids[number])
		}
		more = more || b.paused || !long
	}
	slices.SortFunc(list, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
	return list, more
}

// publishAll publishes what changes until ctx ends.
func (s *SharedRunSet) publishAll(ctx context.Context) {
	var last []ID
	pause, known := publishAfter, true
	refresh := time.NewTicker(publishAgain)
	defer refresh.Stop()
	for {
		again := false
		select {
		case <-s.wake:
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
		list, more := s.long()
		if more {
			s.notify()
		}
		changed := !known || !slices.Equal(last, list) || again && len(list) > 0
		if err := s.publish(ctx, changed, list); err != nil {
			if ctx.Err() == nil {
				s.member.opts.Logger.Warn("the other hosts do not see which turns compute here", "err", err)
			}
			pause, known = publishAgain, false // it may have been written
			s.notify()
			continue
		}
		last, pause, known = list, publishAfter, true
	}
}

// publishWork replaces what a host computes, unless it is dead: that has been noted.
const publishWork = `INSERT INTO computing SELECT $1::bigint, $2::bytea, $3::text, $4::bytea[] WHERE EXISTS (SELECT 1 FROM hosts WHERE hid = $1 AND NOT dead)
	ON CONFLICT (hid) DO UPDATE SET work = excluded.work`

// publish writes what computes, if that has changed, and that work is not to blame for deaths, as it has ended.
func (s *SharedRunSet) publish(ctx context.Context, changed bool, list []ID) error {
	m := s.member
	if changed {
		if err := m.work.exec(ctx, publishWork, m.opts.HID, s.life, m.opts.Address, toBytes(list)); err != nil {
			return err
		}
	}
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	if len(ended) == 0 {
		return nil
	}
	if err := m.work.exec(ctx, "UPDATE deaths SET ended = true WHERE work = ANY($1) AND NOT ended", toBytes(ended)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = s.ended[len(ended):]
	return nil
}

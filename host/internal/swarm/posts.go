package swarm

import (
	"cmp"
	"maps"
	"slices"
)

// Pending is a submission that has no answer yet.
type Pending struct {
	// Row is the row of its message, or of the turn that it lets go on. A post with
	// several recipients, or some at other swarms, has a number that is no row's;
	// each of its rows is here as well, without a key.
	Row       int64
	Door, Key string
}

// posts are the submissions of a task that have no answer yet. There may be
// thousands: no step may cost more because of those that it does not touch.
type posts struct {
	// waiting are those whose message nobody has handled, by its row.
	waiting map[int64]Pending
	handled []Pending
}

// adopt takes in what the store has of a task. A message was handled when its row
// is gone, or belongs to a turn that waits for people; one for other swarms when
// all have answered.
func (p *posts) adopt(snap Snapshot) {
	open := make(map[int64]bool, len(snap.Rows))
	for _, row := range snap.Rows {
		_, begun := snap.Task.breakpoint(row.N)
		open[row.N] = !begun
		if row.Beside && !begun {
			p.waiting[row.N] = Pending{Row: row.N}
		}
	}
	for _, r := range snap.Task.Requests {
		open[r.Post] = true
	}
	for _, one := range snap.Posts {
		if open[one.Row] {
			p.waiting[one.Row] = one
		} else {
			p.handled = append(p.handled, one)
		}
	}
}

// postsStep is what a step does to the posts of its task.
type postsStep struct {
	// added wait for their message to be handled, begun have it handled.
	added, begun []Pending
	answered     answering
}

// answering says which posts a step answers.
type answering int

const (
	answersNone answering = iota
	answersHandled
	answersAll
)

// handle notes that the message of a row is handled, whoever it came from.
func (s *step) handle(row int64) {
	if p, ok := s.live.posts.waiting[row]; ok {
		s.posts.begun = append(s.posts.begun, p)
	}
}

// userLeft reports whether a post's message is still to be handled.
func (s *step) userLeft() bool {
	begun := 0
	for _, p := range s.posts.begun {
		if _, waited := s.live.posts.waiting[p.Row]; waited {
			begun++
		}
	}
	return len(s.live.posts.waiting)+len(s.posts.added) > begun
}

// answerPosts returns the posts that an answer of the step is for: those whose
// message was handled, or all. Each is answered once.
func (s *step) answerPosts(which answering) (list []Pending) {
	had := s.posts.answered
	s.posts.answered = max(had, which)
	if had < answersHandled {
		list = slices.Concat(s.live.posts.handled, s.posts.begun)
	}
	if had < answersAll && which == answersAll {
		left := maps.Clone(s.live.posts.waiting)
		for _, p := range s.posts.begun {
			delete(left, p.Row)
		}
		list = slices.Concat(list, s.posts.added, slices.Collect(maps.Values(left)))
	}
	slices.SortFunc(list, func(a, b Pending) int { return cmp.Compare(a.Row, b.Row) })
	return list
}

// apply makes what a durable step did visible.
func (p *posts) apply(s postsStep) {
	for _, one := range s.begun {
		delete(p.waiting, one.Row)
	}
	p.handled = append(p.handled, s.begun...)
	for _, one := range s.added {
		p.waiting[one.Row] = one
	}
	if s.answered >= answersHandled {
		p.handled = nil
	}
	if s.answered == answersAll {
		clear(p.waiting)
	}
}

package swarm

import (
	"cmp"
	"maps"
	"slices"
)

// PendingPost is a submission that has no answer yet.
type PendingPost struct {
	// Row is the row of its message, or of the turn that it resumes. A post with
	// several recipients, or with remote ones, has a number without a row; each of its
	// rows is listed as well, without a key.
	Row       int64
	Door, Key string
	// Held posts are not answered by the report of a pause.
	Held bool
}

// openPosts are the submissions of a task that have no answer yet. There may be
// thousands: the cost of a mutation must not depend on posts that it does not touch.
type openPosts struct {
	// waiting are the posts whose message was not handled, by its row.
	waiting map[int64]PendingPost
	handled []PendingPost
}

// fillFromSnapshot takes the posts of a task from the store. A local message was
// handled when its row is gone or belongs to a suspended turn; a remote one when all
// recipients have answered.
func (p *openPosts) fillFromSnapshot(snap Snapshot) {
	open := make(map[int64]bool, len(snap.Rows))
	for _, row := range snap.Rows {
		_, begun := snap.Task.findBreakpoint(row.N)
		open[row.N] = !begun
		if row.SharedPost && !begun {
			p.waiting[row.N] = PendingPost{Row: row.N}
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

// postChanges are the changes of a mutation to the posts of its task.
type postChanges struct {
	// added wait for their message to be handled; the message of handled ones was.
	added, handled []PendingPost
	// closed are held posts that were answered one by one.
	closed   []PendingPost
	answered answerScope
}

// answerScope is which posts a mutation answers.
type answerScope int

const (
	answersNone answerScope = iota
	// answersPaused are the handled posts that are not held.
	answersPaused
	answersHandled
	answersAll
)

// markHandled notes that the message of a row was handled, if the row is a post's.
func (mut *mutationBuilder) markHandled(row int64) {
	if p, ok := mut.active.openPosts.waiting[row]; ok {
		mut.postChanges.handled = append(mut.postChanges.handled, p)
	}
}

// hasUnhandledPost reports whether the message of a post was not handled yet.
func (mut *mutationBuilder) hasUnhandledPost() bool {
	open := len(mut.active.openPosts.waiting)
	for _, p := range mut.settledPosts() {
		if _, waited := mut.active.openPosts.waiting[p.Row]; waited {
			open--
		}
	}
	for _, p := range mut.postChanges.added {
		if !slices.Contains(mut.postChanges.closed, p) {
			open++
		}
	}
	return open > 0
}

// settledPosts are the posts that the mutation has handled or closed, each once.
func (mut *mutationBuilder) settledPosts() []PendingPost {
	list := slices.Clone(mut.postChanges.handled)
	for _, p := range mut.postChanges.closed {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// selectAnsweredPosts returns the posts that an answer is for. Each is answered once.
func (mut *mutationBuilder) selectAnsweredPosts(which answerScope) (list []PendingPost) {
	had := mut.postChanges.answered
	mut.postChanges.answered = max(had, which)
	for _, p := range slices.Concat(mut.active.openPosts.handled, mut.postChanges.handled) {
		if scope := p.scope(); had < scope && scope <= which {
			list = append(list, p)
		}
	}
	if had < answersAll && which == answersAll {
		left := maps.Clone(mut.active.openPosts.waiting)
		for _, p := range mut.postChanges.handled {
			delete(left, p.Row)
		}
		list = slices.Concat(list, mut.postChanges.added, slices.Collect(maps.Values(left)))
	}
	list = slices.DeleteFunc(list, func(p PendingPost) bool { return slices.Contains(mut.postChanges.closed, p) })
	slices.SortFunc(list, func(a, b PendingPost) int { return cmp.Compare(a.Row, b.Row) })
	return list
}

// scope is the least scope that answers a handled post.
func (p PendingPost) scope() answerScope {
	if p.Held {
		return answersHandled
	}
	return answersPaused
}

// applyChanges makes the changes of a durable mutation visible.
func (p *openPosts) applyChanges(s postChanges) {
	for _, one := range s.handled {
		delete(p.waiting, one.Row)
	}
	p.handled = append(p.handled, s.handled...)
	for _, one := range s.added {
		p.waiting[one.Row] = one
	}
	for _, one := range s.closed {
		if p.waiting[one.Row] == one {
			delete(p.waiting, one.Row)
		}
	}
	if s.answered > answersNone || len(s.closed) > 0 {
		p.handled = slices.DeleteFunc(p.handled, func(one PendingPost) bool {
			return one.scope() <= s.answered || slices.Contains(s.closed, one)
		})
	}
	if s.answered == answersAll {
		clear(p.waiting)
	}
}

// has reports whether a submission still waits for its answer.
func (p *openPosts) has(one PendingPost) bool {
	return p.waiting[one.Row] == one || slices.Contains(p.handled, one)
}

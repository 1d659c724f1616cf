package crash_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// soakTally counts what callers have asked, by caller.
type soakTally struct {
	mu   sync.Mutex
	rows map[string]*soakRow
	// answers are the ids of questions that were answered.
	answers []string
}

// soakRow is what one caller has asked: calledOff is what a cut has called off, refused what was no
// message, and unread the questions whose answers were not read.
type soakRow struct {
	asked, answered, calledOff, repeated, refused, unread int
	// last is the last reason for which a question was repeated.
	last string
}

func (y *soakTally) count(name string, change func(*soakRow)) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.rows == nil {
		y.rows = map[string]*soakRow{}
	}
	if y.rows[name] == nil {
		y.rows[name] = &soakRow{}
	}
	change(y.rows[name])
}

func (y *soakTally) answer(name, id string) {
	y.count(name, func(r *soakRow) { r.answered++; y.answers = append(y.answers, id) })
}

// table is a line for each caller.
func (y *soakTally) table() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "%-10s %8s %8s %8s %8s %8s %8s  %s\n", "over", "asked", "answered", "off", "repeated", "refused", "unread", "the last reason to repeat")
	for _, name := range slices.Sorted(maps.Keys(y.rows)) {
		r := y.rows[name]
		fmt.Fprintf(&text, "%-10s %8d %8d %8d %8d %8d %8d  %.120q\n", name, r.asked, r.answered, r.calledOff, r.repeated, r.refused, r.unread, r.last)
	}
	return text.String()
}

// answered is the number of questions that were answered.
func (y *soakTally) answered() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return len(y.answers)
}

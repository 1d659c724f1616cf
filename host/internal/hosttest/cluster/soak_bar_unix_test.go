//go:build unix

package cluster_test

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// What may be wrong. None of it may ever be.
const (
	lostTask     = "accepted tasks that are lost"
	wrongMail    = "tasks with a message or an event that is lost, double or out of order"
	wrongAnswer  = "answers that differ"
	wrongClaim   = "values that none or several tasks have got"
	wrongEffect  = "effects that did not take place, or not under their key"
	repeatedOnce = "effects without a key that were repeated"
	wrongRepeats = "more effects repeated than takeovers x tasks under way"
	wrongFence   = "hosts fenced that had the server"
)

// fault notes that something is wrong. Of each kind the first ten are written down.
func (s *soak) fault(kind, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults[kind]++; s.faults[kind] <= 10 {
		s.t.Logf(format, args...)
	}
}

// countFaults is how much was wrong so far.
func (s *soak) countFaults() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.faults {
		n += of
	}
	return n
}

// bar is what is demanded of the hosts, and what was measured.
type bar struct {
	what, limit, measured string
	met                   bool
	// timed: only the long form must meet it.
	timed bool
}

// soakTasks is how many tasks the long form has at least.
const soakTasks = 1000

// bars are what the soak demands.
func (s *soak) bars() (list []bar) {
	for _, kind := range []string{lostTask, wrongMail, wrongAnswer, wrongClaim, wrongEffect, repeatedOnce, wrongRepeats, wrongFence} {
		list = append(list, bar{kind, "0", fmt.Sprint(s.faults[kind]), s.faults[kind] == 0, false})
	}
	tasks := s.answered()
	list = append(list, bar{"tasks answered", fmt.Sprint("at least ", soakTasks), fmt.Sprint(tasks), tasks >= soakTasks, true})
	stalls := s.effects.longestStalls()
	for _, one := range []struct {
		what  string
		took  time.Duration
		limit time.Duration
	}{
		{fencingAfterKill, s.slowest[fencingAfterKill], hostTTL + time.Second},
		{fencingAfterStop, s.slowest[fencingAfterStop], hostTTL + time.Second},
		{"longest stall of a task, host " + killedForGood, stalls[killedForGood], hostTTL + time.Second},
		{"longest stall of a task, host " + stoodStill, stalls[stoodStill], hostTTL + time.Second},
		{"longest stall of a task, host " + killedBriefly, stalls[killedBriefly], 2 * time.Second},
		{"longest stall of a task, hosts " + restarted, stalls[restarted], time.Second},
		{"longest stall of a task, " + primaryLost, stalls[primaryLost], s.slowest[promotion] + time.Second},
	} {
		took, limit := one.took.Round(time.Millisecond), one.limit.Round(time.Millisecond)
		list = append(list, bar{one.what, fmt.Sprint("at most ", limit), took.String(), took <= limit, true})
	}
	return list
}

// judge logs what is demanded of the hosts and what was measured. What is missed is an error, a time
// only in the long form.
func (s *soak) judge() {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	missed := 0
	for _, b := range s.bars() {
		verdict := "met"
		if !b.met {
			verdict = "missed"
			if !b.timed || s.form.judged {
				missed++
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", b.what, b.limit, b.measured, verdict)
	}
	for _, elsewhere := range [][2]string{
		{"a revoked token is refused at all hosts", "TestTokens, make bench BENCHFLAGS='-only cluster'"},
		{"money beyond usd_per_day", "TestBudget"},
		{"hosts whose server has lost groups stop and give their number", "TestLaggingStandby"},
		{"without the fence the soak fails", "TestSoakControl"},
	} {
		fmt.Fprintf(table, "%s\tsee\t%s\t\n", elsewhere[0], elsewhere[1])
	}
	_ = table.Flush()
	s.t.Logf("a task stalls for at most %v while nothing is disturbed\n%s", s.effects.longestStalls()["calm"].Round(time.Millisecond), &text)
	if missed > 0 {
		s.t.Errorf("%d bars are missed", missed)
	}
}

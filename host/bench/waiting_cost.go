package main

import (
	"fmt"
	"os"
	"time"

	"skep/host/internal/turn/capability"
)

// waitingCost is what it took to have so many wait and to let them go: bytes of each,
// numbers, and seconds.
type waitingCost [figures]float64

// The figures of a blockade.
const (
	ownBytes        = iota // resident and written
	heapBytes              // of the collector's
	stackBytes             // of goroutines
	besideBytes            // its own, but not the Go runtime's
	sharedBytes            // resident and only read: pages that all have in common
	descendantBytes        // written by the processes it has started
	routineCount
	fileCount
	idleTime // a second, while all wait
	arriveTime
	drainTime
	quiet50 // another user's message, before
	quiet99
	beside50 // and meanwhile
	beside99
	figures
)

// middle takes the median of each figure.
func middle(all []waitingCost) (m waitingCost) {
	for i := range m {
		var values []float64
		for _, k := range all {
			values = append(values, k[i])
		}
		m[i] = median(values)
	}
	return m
}

// waitingCost measures one that n are in.
func (b *bench) waitingCost(server *child, w waiter, n int, meanwhile func() error) (k waitingCost, err error) {
	before, err := w.look()
	if err != nil {
		return k, err
	}
	began := time.Now()
	var let time.Time
	err = w.holdAndRelease(server, n, func() error {
		k[arriveTime] = time.Since(began).Seconds()
		time.Sleep(3 * capability.HibernateAfter) // the last to come keep their sandbox so long
		after, err := w.look()
		if err != nil {
			return err
		}
		k.fill(before, after, float64(n))
		spent, err := idle(time.Second, w.on)
		if err != nil {
			return err
		}
		k[idleTime] = spent[0]
		err = meanwhile()
		let = time.Now()
		return err
	})
	k[drainTime] = time.Since(let).Seconds()
	return k, err
}

// look is what a child has at the moment.
type look struct {
	runtimeStats
	own, rss, descendantMemory, files float64
}

func (w waiter) look() (l look, err error) {
	if err := w.on.call(statsRequest{Free: true}, &l.runtimeStats); err != nil {
		return l, err
	}
	pid := w.on.pid()
	if l.rss, err = statusOf(pid, "VmRSS"); err != nil {
		return l, err
	}
	if l.own, err = statusOf(pid, "RssAnon"); err != nil {
		return l, err
	}
	if l.descendantMemory, err = descendantMemory(pid); err != nil {
		return l, err
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	l.files = float64(len(open))
	return l, err
}

// fill takes what lies between two looks, for each of n.
func (k *waitingCost) fill(before, after look, n float64) {
	k[ownBytes] = (after.own - before.own) / n
	k[heapBytes], k[stackBytes] = (after.Heap-before.Heap)/n, (after.Stacks-before.Stacks)/n
	k[besideBytes] = k[ownBytes] - (after.Go-before.Go)/n
	k[sharedBytes] = (after.rss-before.rss)/n - k[ownBytes]
	k[descendantBytes] = (after.descendantMemory - before.descendantMemory) / n
	k[routineCount], k[fileCount] = float64(after.Goroutines-before.Goroutines), after.files-before.files
}

package contract

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"skep/host/internal/hosttest"
)

// exchanges is how many exchanges the last case answers; SKEP_EXCHANGES has another number.
const exchanges = 200

// memoryFor is the number of exchanges from which memory is held to its bound.
const memoryFor = 10_000

// leavesNothing: answered exchanges leave no task that runs, no goroutine and no memory.
// It runs alone.
func (s *suite) leavesNothing(t *testing.T) {
	all := exchanges
	if text := os.Getenv("SKEP_EXCHANGES"); text != "" {
		var err error
		if all, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	own := *s
	own.web, own.foreign = newWeb(t), newForeign()
	dir := t.TempDir()
	own.write(t, dir, "requests = RATE", "requests = 0")
	own.site = startSite(t, s.p, dir, nil)
	own.site.StopAtEnd(t)
	own.answer(t, all/10)
	before, goroutines := heap(), runtime.NumGoroutine()
	own.answer(t, all)
	after := heap()
	t.Logf("%d exchanges, %d KiB of heap before and %d KiB after, %d goroutines", all, before>>10, after>>10, goroutines)
	if grown := int64(after) - int64(before); all >= memoryFor && grown > 8<<20 {
		t.Errorf("the heap has grown by %d KiB", grown>>10)
	}
	settled(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
	own.nothingRuns(t)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// askers send at the same time.
const askers = 8

// answer has exchanges answered, each in a task of its own, and closes its clients.
func (s *suite) answer(t *testing.T, all int) {
	t.Helper()
	t.Run(fmt.Sprint(all), func(t *testing.T) {
		var wg sync.WaitGroup
		for n := range askers {
			cl := s.dial(t, s.token())
			wg.Go(func() {
				for i := n; i < all; i += askers {
					name := fmt.Sprintf("load-%d-%d", all, i)
					got, err := cl.Send(t.Context(), Message{ID: name, To: "boss", Thread: name, Text: hosttest.Script(finish("done"))})
					if err != nil || got.Status != Done || got.Text != "done" {
						t.Errorf("%s: %s %q, %v", name, got.Status, got.Text, err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// nothingRuns looks at tasks of the exchanges.
func (s *suite) nothingRuns(t *testing.T) {
	t.Helper()
	for n := range askers {
		parts, err := hosttest.TaskParts(t.Context(), s.site.Data, fmt.Sprintf("load-%d-%d", exchanges, n))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !part.Task.State.Ended() || len(part.Rows)+len(part.Outbox)+len(part.Posts) > 0 {
				t.Errorf("task %s is %s", part.Task.Key.Task, part.Task.State)
			}
		}
	}
}

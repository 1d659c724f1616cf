package contract

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/hosttest"
)

// exchanges is how many exchanges the last case answers; SKEP_EXCHANGES has another number.
const exchanges = 200

// memoryFor is the number of exchanges from which memory is held to its bound.
const memoryFor = 10_000

// leavesNothing: answered exchanges leave no task that runs, no goroutine and no memory.
// Other suites run at the same time: their goroutines have other labels.
func (s *suite) leavesNothing(t *testing.T) {
	pprof.Do(t.Context(), pprof.Labels(leavingLabel, t.Name()), func(context.Context) { s.leaveNothing(t) })
}

// leavingLabel is the name of the label that the goroutines of a host have, and of its callers
// (https://pkg.go.dev/runtime/pprof#Do).
const leavingLabel = "leaving"

// goroutines counts the goroutines of a case.
func goroutines(t *testing.T) (all int) {
	t.Helper()
	var text bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Fatal(err)
	}
	// "12 @ 0x1 0x2\n# labels: {"leaving":"name"}\n…"
	for record := range strings.SplitSeq(text.String(), "\n\n") {
		if n := 0; strings.Contains(record, fmt.Sprintf("%q:%q", leavingLabel, t.Name())) {
			if _, err := fmt.Sscanf(record[strings.LastIndex(record[:strings.Index(record, " @ ")], "\n")+1:], "%d @", &n); err != nil {
				t.Fatalf("%q: %v", record, err)
			}
			all += n
		}
	}
	return all
}

func (s *suite) leaveNothing(t *testing.T) {
	t.Helper()
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
	own.site = startSite(t, own.p, dir, nil)
	own.site.StopAtEnd(t)
	own.answer(t, all/10)
	before, running := heap(), goroutines(t)
	if running == 0 {
		t.Fatal("the host's goroutines are not seen")
	}
	own.answer(t, all)
	after := heap()
	t.Logf("%d exchanges, %d KiB of heap before and %d KiB after, %d goroutines", all, before>>10, after>>10, running)
	if grown := int64(after) - int64(before); all >= memoryFor && grown > 8<<20 {
		t.Errorf("the heap has grown by %d KiB", grown>>10)
	}
	settled(t, "no goroutine is left", func() bool { return goroutines(t) <= running })
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
		parts, err := hosttest.TaskParts(t, s.site.Data, fmt.Sprintf("load-%d-%d", exchanges, n))
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

package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/abi"
	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/spec/mail"
)

// TestKill: tasks from 16 clients while the host is killed at random and
// started again. Every accepted task ends exactly once, every client gets its
// own answer, no history holds a message twice, and a reader of events that
// resumes misses and repeats none.
func TestKill(t *testing.T) {
	t.Parallel()
	tasks, kills := 160, 4
	if os.Getenv("SKEP_SOAK") != "" {
		tasks, kills = 1000, 10
	}
	if testing.Short() {
		tasks, kills = 48, 2
	}
	v := hosttest.StartProcess(t, hosttest.ScriptSwarm)
	const clients = 16
	cl := v.Client()
	ids := make(chan string, tasks)
	var wg sync.WaitGroup
	var answered atomic.Int64
	for c := range clients {
		wg.Go(func() {
			for i := c; i < tasks; i += clients {
				id := fmt.Sprintf("task-%d", i)
				if err := crashTask(t.Context(), cl, id, i%2 == 0); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				answered.Add(1)
				ids <- id
			}
		})
	}
	killed := killAtRandom(v, &answered, int64(tasks), kills)
	wg.Wait()
	close(ids)
	t.Logf("%d tasks, %d kills", tasks, killed())

	for id := range ids {
		checkTask(t, cl, id)
	}
}

// killAtRandom kills the host as the work goes on, spread over all of it. The
// function it returns waits for the last start and counts.
func killAtRandom(v *hosttest.Process, done *atomic.Int64, total int64, kills int) func() int {
	n := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for ; n < kills; n++ {
			mark := total * int64(n) / int64(kills)
			for done.Load() < mark {
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(time.Duration(50+rand.IntN(700)) * time.Millisecond)
			v.Kill()
			v.Start()
		}
	})
	return func() int { wg.Wait(); return n }
}

// crashTask runs one task, half of them by its events.
func crashTask(ctx context.Context, c *client.Client, id string, events bool) error {
	post := client.Post{
		Task: id, Key: "key-" + id,
		Body: `[["send_request",{"target":"math","subject":"s","body":"` + id + `"}],["await_message",{}]]`,
	}
	return hosttest.CheckAnswer(ctx, c, post, events, "boss got [Re: s] echo: "+id)
}

func checkTask(t *testing.T, c *client.Client, id string) {
	t.Helper()
	if err := hosttest.Follow(t.Context(), c, id); err != nil {
		t.Errorf("%s: events: %v", id, err)
	}
	task, err := c.Task(t.Context(), id)
	if err != nil || task.State != "completed" {
		t.Errorf("%s: state %q, %v", id, task.State, err)
	}
	for _, agent := range []string{"boss", "math"} {
		h, err := c.History(t.Context(), id, agent, 0, 100)
		if err != nil {
			t.Errorf("%s: history: %v", id, err)
			continue
		}
		if err := checkDuplicates(h.Entries); err != nil {
			t.Errorf("%s: history of %s: %v", id, agent, err)
		}
	}
}

// checkDuplicates checks that a history numbers its entries without a gap and holds
// no message twice.
func checkDuplicates(entries []json.RawMessage) error {
	seen := map[string]bool{}
	for i, raw := range entries {
		var e abi.HistoryEntry
		if err := json.Unmarshal(raw, &e); err != nil {
			return err
		}
		if e.Seq != int64(i+1) {
			return fmt.Errorf("entry %d has seq %d", i+1, e.Seq)
		}
		if e.Kind != abi.KindIn {
			continue
		}
		m, err := mail.ParseMessage(e.Message)
		if err != nil {
			return err
		}
		if seen[m.ID] {
			return errors.New("message " + m.ID + " stands twice")
		}
		seen[m.ID] = true
	}
	if len(seen) == 0 {
		return errors.New("no message at all")
	}
	return nil
}

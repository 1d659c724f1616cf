package sqlite_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// BenchmarkTask measures the durable steps of a trivial task, its Accept and
// its only turn's Commit. Right after, the same number of bytes is written to a
// plain file as the same number of steps, synced in groups by one goroutine as
// well: what the disk can do at that moment. of_raw is the ratio of both rates.
func BenchmarkTask(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var next atomic.Int64
			took := spread(b, writers, func() error {
				accept, post, commit := trivial(next.Add(1))
				if _, err := s.Accept(b.Context(), accept, post); err != nil {
					return err
				}
				return s.Commit(b.Context(), commit)
			})
			b.StopTimer()
			steps, groups := s.Stats()
			raw := rawLimit(b, writers, int(steps), stepBytes(b))
			b.ReportMetric(float64(steps)/took.Seconds(), "steps/s")
			b.ReportMetric(float64(steps)/float64(groups), "steps/group")
			b.ReportMetric(raw.Seconds()/took.Seconds(), "of_raw")
		})
	}
}

// spread runs f b.N times on a number of goroutines.
func spread(b *testing.B, goroutines int, f func() error) time.Duration {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	began := time.Now()
	for range goroutines {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(began)
}

// trivial makes the steps of a task whose message is half a KiB.
func trivial(n int64) (accept swarm.Step, post swarm.Submission, commit swarm.Step) {
	now := time.Date(2026, 3, 1, 9, 30, 0, int(n), time.UTC)
	key := swarm.TaskKey{
		InstanceKey: swarm.InstanceKey{Tenant: swarm.DefaultTenant, Swarm: "hive", Instance: fmt.Sprintf("user:u%d", n%100)},
		Task:        mail.NewUUID([16]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n * 31)}),
	}
	id := mail.NewUUID([16]byte{byte(n * 131), byte(n), byte(n >> 8), byte(n >> 16)})
	m := mail.Message{
		ID: id, Timestamp: mail.FormatTime(now), Type: mail.Request,
		Payload: mail.Payload{
			TaskID: key.Task, ID: id, Sender: mail.Address{Type: mail.User, Name: "alice"},
			Recipients: []mail.Address{{Type: mail.Agent, Name: "supervisor"}}, Subject: "s", Body: strings.Repeat("text ", 100),
		},
	}
	raw, _ := json.Marshal(m)
	event := func(seq int64, name string) swarm.Event {
		return swarm.Event{Seq: seq, Name: name, Time: now, Extra: json.RawMessage(`{"full_message":` + string(raw) + `}`)}
	}
	entry := func(seq int64, h abi.HistoryEntry) swarm.AgentEntry {
		h.Seq, h.Turn, h.Time = seq, 1, mail.FormatTime(now)
		return swarm.AgentEntry{Agent: "supervisor", Entry: h}
	}
	task := swarm.Task{
		Key: key, Owner: "user:alice@hive", Entrypoint: "supervisor", State: swarm.StateRunning, Created: now, Updated: now,
		Deadline: now.Add(time.Hour), MaxSteps: 100, Rows: 1, Cursor: 1, Nonce: make([]byte, 16),
		Posts: []swarm.Pending{{Row: 1, Door: "rest", Key: id}},
	}
	accept = swarm.Step{Task: task, Insert: []swarm.Row{{N: 1, Agent: "supervisor", Tier: 3, Message: m}}, Events: []swarm.Event{event(1, "new_message")}}
	post = swarm.Submission{
		Instance: key.InstanceKey, Door: "rest", Key: id, Digest: make([]byte, 32), Task: key.Task,
		Row: 1, Cursor: 1, Expires: now.Add(24 * time.Hour),
	}
	task.State, task.Posts, task.Steps, task.Cursor = swarm.StateCompleted, nil, 1, 3
	task.History = map[string]int64{"supervisor": 3}
	commit = swarm.Step{
		Task: task, Consume: []int64{1}, Events: []swarm.Event{event(2, "new_message"), {Seq: 3, Name: "task_complete", Time: now}},
		History: []swarm.AgentEntry{
			entry(1, abi.HistoryEntry{Kind: abi.KindIn, Message: raw}),
			entry(2, abi.HistoryEntry{Kind: abi.KindCall, Call: &abi.Call{ID: "1", Name: "task_complete", Args: json.RawMessage(`{"finish_message":"done"}`)}}),
			entry(3, abi.HistoryEntry{Kind: abi.KindResult, Result: &abi.Result{ID: "1", OK: true, Text: "SUCCESS: task completed"}}),
		},
		Answers: []swarm.Answered{{Door: "rest", Key: id, Cursor: 3}},
	}
	return accept, post, commit
}

// stepBytes is the mean length of a step's JSON.
func stepBytes(b *testing.B) int {
	b.Helper()
	accept, _, commit := trivial(1)
	raw, err := json.Marshal([]swarm.Step{accept, commit})
	if err != nil {
		b.Fatal(err)
	}
	return len(raw) / 2
}

// rawLimit appends steps of a size to a file, syncing once for all that wait.
func rawLimit(b *testing.B, writers, steps, size int) time.Duration {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	type job struct{ done chan error }
	queue := make(chan job, 256)
	var group sync.WaitGroup
	group.Go(func() {
		step := make([]byte, size)
		for first := range queue {
			jobs := []job{first}
			for len(queue) > 0 {
				jobs = append(jobs, <-queue)
			}
			var err error
			for range jobs {
				if _, e := f.Write(step); e != nil {
					err = e
				}
			}
			if e := syscall.Fdatasync(int(f.Fd())); e != nil {
				err = e
			}
			for _, j := range jobs {
				j.done <- err
			}
		}
	})
	began := time.Now()
	var left atomic.Int64
	left.Store(int64(steps))
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			j := job{make(chan error, 1)}
			for left.Add(-1) >= 0 {
				queue <- j
				if err := <-j.done; err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	close(queue)
	group.Wait()
	return took
}

package sqlite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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
// its only turn's Commit. In turns with that, as many steps of as many bytes are
// appended to a plain file, which one goroutine syncs in groups as well: what
// the disk can do. of_raw is the ratio of both rates.
func BenchmarkTask(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			raw := newRawFile(b)
			defer raw.close()
			var next atomic.Int64
			var took, limit time.Duration
			b.ResetTimer()
			for left := b.N; left > 0; left -= turnTasks {
				n := min(left, turnTasks)
				took += spread(b, writers, n, func() error {
					accept, post, commit := trivial(next.Add(1))
					if _, err := s.Accept(b.Context(), accept, post); err != nil {
						return err
					}
					return s.Commit(b.Context(), commit)
				})
				b.StopTimer()
				limit += spread(b, writers, 2*n, raw.append)
				b.StartTimer()
			}
			steps, groups := s.Stats()
			b.ReportMetric(float64(steps)/took.Seconds(), "steps/s")
			b.ReportMetric(float64(steps)/float64(groups), "steps/group")
			b.ReportMetric(limit.Seconds()/took.Seconds(), "of_raw")
		})
	}
}

// turnTasks is how many tasks run before it is the plain file's turn: few, so
// that both see the same disk when others use it too.
const turnTasks = 400

// spread runs f n times on a number of goroutines.
func spread(b *testing.B, goroutines, n int, f func() error) time.Duration {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
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
func trivial(n int64) (accept swarm.Mutation, post swarm.Submission, commit swarm.Mutation) {
	now := time.Date(2026, 3, 1, 9, 30, 0, int(n), time.UTC)
	key := swarm.TaskKey{
		InstanceKey: swarm.InstanceKey{Tenant: swarm.DefaultTenant, Swarm: "hive", Instance: fmt.Sprintf("user:u%d", n%100)},
		Task:        mail.NewUUID([16]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n * 31)}),
	}
	m := trivialMessage(n, now, key.Task)
	raw, _ := json.Marshal(m)
	told := swarm.Event{Seq: 1, Name: "new_message", Time: now, Extra: json.RawMessage(`{"full_message":` + string(raw) + `}`)}
	task := swarm.Task{
		Key: key, Owner: "user:alice@hive", Entrypoint: "supervisor", State: swarm.StateRunning, Created: now, Updated: now,
		Deadline: now.Add(time.Hour), MaxSteps: 100, Rows: 1, Cursor: 1, Nonce: make([]byte, 16),
	}
	row := swarm.Row{N: 1, Agent: "supervisor", Tier: 3, Message: m}
	accept = swarm.Mutation{Task: task, Insert: []swarm.Row{row}, Events: []swarm.Event{told}}
	post = swarm.Submission{
		Instance: key.InstanceKey, Door: "rest", Key: m.ID, Digest: make([]byte, 32), Task: key.Task,
		Row: 1, Cursor: 1, Expires: now.Add(24 * time.Hour),
	}
	task.State, task.Steps, task.Cursor = swarm.StateCompleted, 1, 3
	task.History = map[string]int64{"supervisor": 3}
	told.Seq = 2
	commit = swarm.Mutation{
		Usage: []swarm.UsageCount{{UsageKey: swarm.UsageKey{Agent: "supervisor"}, UsageSum: swarm.UsageSum{Turns: 1, Fuel: 1000, CPU: 1000}}},
		Task:  task, Consume: []int64{1}, History: trivialHistory(now, raw),
		Events:  []swarm.Event{told, {Seq: 3, Name: "task_complete", Time: now}},
		Answers: []swarm.SubmissionAnswer{{Door: "rest", Key: m.ID, Cursor: 3}},
	}
	return accept, post, commit
}

func trivialMessage(n int64, now time.Time, task string) mail.Message {
	id := mail.NewUUID([16]byte{byte(n * 131), byte(n), byte(n >> 8), byte(n >> 16)})
	return mail.Message{
		ID: id, Timestamp: mail.FormatTime(now), Type: mail.Request,
		Payload: mail.Payload{
			TaskID: task, ID: id, Sender: mail.Address{Type: mail.User, Name: "alice"},
			Recipients: []mail.Address{{Type: mail.Agent, Name: "supervisor"}}, Subject: "s", Body: strings.Repeat("text ", 100),
		},
	}
}

func trivialHistory(now time.Time, message json.RawMessage) []swarm.AgentEntry {
	list := []swarm.AgentEntry{
		{Entry: abi.HistoryEntry{Kind: abi.KindIn, Message: message}},
		{Entry: abi.HistoryEntry{Kind: abi.KindCall, Call: &abi.Call{ID: "1", Name: "task_complete", Args: json.RawMessage(`{"finish_message":"done"}`)}}},
		{Entry: abi.HistoryEntry{Kind: abi.KindResult, Result: &abi.Result{ID: "1", OK: true, Text: "SUCCESS: task completed"}}},
	}
	for i := range list {
		list[i].Agent = "supervisor"
		list[i].Entry.Seq, list[i].Entry.Turn, list[i].Entry.Time = int64(i+1), 1, mail.FormatTime(now)
	}
	return list
}

// rawFile appends steps to a file and syncs it once for all that wait.
type rawFile struct {
	f       *os.File
	step    []byte
	queue   chan chan error
	stopped sync.WaitGroup
}

func newRawFile(b *testing.B) *rawFile {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	accept, _, commit := trivial(1)
	both, err := json.Marshal([]swarm.Mutation{accept, commit})
	if err != nil {
		b.Fatal(err)
	}
	r := &rawFile{f: f, step: both[:len(both)/2], queue: make(chan chan error, 256)}
	r.stopped.Go(r.run)
	return r
}

func (r *rawFile) append() error {
	done := make(chan error, 1)
	r.queue <- done
	return <-done
}

func (r *rawFile) run() {
	for first := range r.queue {
		runtime.Gosched()
		group := []chan error{first}
		for len(r.queue) > 0 {
			group = append(group, <-r.queue)
		}
		_, err := r.f.Write(bytes.Repeat(r.step, len(group)))
		err = errors.Join(err, syscall.Fdatasync(int(r.f.Fd())))
		for _, done := range group {
			done <- err
		}
	}
}

func (r *rawFile) close() {
	close(r.queue)
	r.stopped.Wait()
	r.f.Close()
}

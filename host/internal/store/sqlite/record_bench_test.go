package sqlite_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// BenchmarkRecord measures what the record of a turn with a 4 KiB input costs in
// its commit, and what sealing costs on top. Three stores take turns, so that
// they see the same disk: bare has no records, the others are ratios to it in
// steps a second. The CPU that each took does not depend on who else uses the
// machine. B/task is what the record makes a task larger by.
func BenchmarkRecord(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			bare, record, sealed := newLane(b, false, nil), newLane(b, true, nil), newLane(b, true, &keyring.Options{})
			sealedBare := newLane(b, false, &keyring.Options{})
			lanes := []*lane{bare, record, sealed, sealedBare}
			for left := b.N; left > 0; left -= turnTasks {
				for _, l := range lanes {
					l.run(b, writers, min(left, turnTasks))
				}
			}
			rate := func(l *lane) float64 { return float64(2*b.N) / l.took.Seconds() }
			b.ReportMetric(rate(bare), "bare_steps/s")
			b.ReportMetric(rate(record)/rate(bare), "record/bare")
			b.ReportMetric(rate(sealed)/rate(record), "sealed/record")
			b.ReportMetric(rate(sealedBare)/rate(bare), "sealed/bare")
			b.ReportMetric(perTask(bare, b.N), "bare_cpu_us/task")
			b.ReportMetric(perTask(record, b.N), "record_cpu_us/task")
			b.ReportMetric(perTask(sealed, b.N), "both_cpu_us/task")
			b.ReportMetric(float64(record.bytes(b)-bare.bytes(b))/float64(b.N), "B/task")
		})
	}
}

// lane is one way to keep the same tasks.
type lane struct {
	store   *sqlite.Store
	records []*swarm.Record // nil for none
	next    atomic.Int64
	took    time.Duration
	cpu     time.Duration
}

func perTask(l *lane, n int) float64 { return float64(l.cpu.Microseconds()) / float64(n) }

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func newLane(b *testing.B, recorded bool, keys *keyring.Options) *lane {
	b.Helper()
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "d"), sqlite.Options{Keyring: keys})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	l := &lane{store: s}
	for n := range int64(64) {
		if recorded {
			l.records = append(l.records, turnRecord(n, 4<<10))
		}
	}
	return l
}

func (l *lane) run(b *testing.B, writers, tasks int) {
	began := cpuTime(b)
	defer func() { l.cpu += cpuTime(b) - began }()
	l.took += spread(b, writers, tasks, func() error {
		n := l.next.Add(1)
		accept, post, commit := trivial(n)
		if l.records != nil {
			commit.Record = l.records[n%int64(len(l.records))]
		}
		if _, err := l.store.Accept(b.Context(), accept, post); err != nil {
			return err
		}
		return l.store.Commit(b.Context(), commit)
	})
}

func (l *lane) bytes(b *testing.B) int64 {
	f, err := l.store.Footprint(b.Context(), swarm.DefaultTenant)
	if err != nil {
		b.Fatal(err)
	}
	return f.Bytes
}

// turnRecord is the record of a turn of three calls.
func turnRecord(n int64, input int) *swarm.Record {
	now := time.Date(2026, 3, 1, 9, 30, 0, int(n), time.UTC)
	r := &swarm.Record{
		N: 1,
		Header: &swarm.TurnHeader{
			Agent: "supervisor", Start: now, Input: turnInput(n, input), Module: strings.Repeat("0f", 32), Recipe: "1/3/amd64",
			Limits: json.RawMessage(`{"memory":67108864,"fuel":2000000000,"stack":8388608}`), Attempt: 1,
		},
		End: &swarm.TurnEnd{Exit: "ok", Output: []byte(`{"state":{"n":1}}`), Usage: swarm.Usage{Turns: 1, Fuel: 123456, CPU: time.Millisecond}, At: now},
	}
	for i := range int64(3) {
		r.Entries = append(r.Entries, swarm.Entry{
			N: i + 1, Call: fmt.Sprint(i + 1), Kind: swarm.EntryCall, Op: abi.OpMail, Digest: make([]byte, 32),
			Answer: []byte(`{"id":"6b1f0e6e-1c1f-4c55-9c58-0c60e6a1b7d1","text":"SUCCESS: request sent"}`), Time: now,
		})
	}
	return r
}

// turnInput is about what an agent reads: a history of messages whose words
// differ.
func turnInput(n int64, size int) []byte {
	words := strings.Fields(`the agent asked for a report on order and customer delivery weather in city with
		price total please check again tomorrow because it was late response request system math stats supervisor
		mean median value table column row answer result unknown error limit time task message body subject hello`)
	rnd := rand.New(rand.NewPCG(uint64(n), 1))
	var history []abi.HistoryEntry
	for i := int64(1); ; i++ {
		var text strings.Builder
		for text.Len() < 200+rnd.IntN(400) {
			fmt.Fprintf(&text, "%s %d ", words[rnd.IntN(len(words))], rnd.IntN(1000))
		}
		m := trivialMessage(n+i, time.Unix(n, i), "6b1f0e6e-1c1f-4c55-9c58-0c60e6a1b7d1")
		m.Payload.Body = text.String()
		raw, _ := json.Marshal(m)
		history = append(history, abi.HistoryEntry{Seq: i, Turn: i / 3, Time: "2026-11-20T21:01:02.000003Z", Kind: abi.KindIn, Message: raw})
		in, _ := json.Marshal(abi.TurnInput{V: 1, Turn: n, Message: raw, History: abi.History{Count: i, Tail: history}})
		if len(in) >= size {
			return in
		}
	}
}

package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/abi"
	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// atOnce is the number of questions that are under way when a host is killed.
const atOnce = 10

// TestKillEverywhere: questions pass two hosts over all protocols, and one host, the other one
// or both are killed in the middle of them, at another moment each time. Each question has its
// answer, and each agent on its way got the question once and the answer once.
func TestKillEverywhere(t *testing.T) {
	t.Parallel()
	want := 12 // questions in whose middle the host was killed
	if n, err := strconv.Atoi(os.Getenv("SKEP_KILLED_RUNS")); err == nil {
		want = n
	}
	const wait = `timeout = "5m"`
	// A partner is tried for longer than the host takes to come back.
	const ofAction = "of a call\n" + wait // which has no give_up
	e := hosttest.StartEverywhere(t, ofAction, ofAction, wait, wait+"\ngive_up = \"10m\"")
	c := e.Client("a-key-to-try-on-this-machine", "")
	askAll(t, c, 0).Wait()
	size, killed, n := logSize(t, e), 0, atOnce // of the log of questions that nothing disturbs
	begun := time.Now()
	for ; killed < want && !t.Failed(); n += atOnce {
		killed += killAmong(t, e, c, n, size)
		t.Logf("%v: %d questions, of which %d of %d were under way at a kill: %d of hive, %d of depot",
			time.Since(begun).Round(time.Second), n+atOnce, killed, want, e.Hive.Life-1, e.Depot.Life-1)
	}
	got := map[string]int{}
	for name, p := range map[string]*hosttest.Process{"hive": e.Hive, "depot": e.Depot} {
		p.Kill()
		s := hosttest.OpenStore(t, p.Data())
		countMail(t, s, name, got)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	checkCounts(t, got, n)
}

// killAmong asks atOnce questions, kills and starts one of the hosts or both when some of their
// messages have come to depot, and wants all answers. size is what all of them add to depot's
// log. It returns how many questions had no answer at the kill.
func killAmong(t *testing.T, e *hosttest.Everywhere, c *client.Client, first int, size int64) int {
	t.Helper()
	until := logSize(t, e) + rand.Int64N(size)
	all := askAll(t, c, first)
	for all.answered.Load() < atOnce && logSize(t, e) < until {
		time.Sleep(time.Millisecond)
	}
	victims := [][]*hosttest.Process{{e.Hive}, {e.Depot}, {e.Hive, e.Depot}}[rand.IntN(3)]
	for _, p := range victims {
		p.Kill()
	}
	had := all.answered.Load()
	for _, p := range victims {
		p.Start()
	}
	all.Wait()
	return atOnce - int(had)
}

// logSize is the size of depot's log of messages.
func logSize(t *testing.T, e *hosttest.Everywhere) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(e.Depot.Data(), "messages.log"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// asked are questions that are under way.
type asked struct {
	sync.WaitGroup
	answered atomic.Int64
}

// askAll asks atOnce questions, from the first number on.
func askAll(t *testing.T, c *client.Client, first int) *asked {
	a := &asked{}
	for i := range atOnce {
		a.Go(func() {
			if err := askEverywhere(t.Context(), c, fmt.Sprintf("question %d;", first+i)); err != nil {
				t.Error(err)
			}
			a.answered.Add(1)
		})
	}
	return a
}

func askEverywhere(ctx context.Context, c *client.Client, question string) error {
	id := strings.Trim(strings.ReplaceAll(question, " ", "-"), ";")
	err := hosttest.CheckAnswer(ctx, c, client.Post{Task: id, Key: "key-" + id, Body: question}, false, hosttest.EverywhereAnswer(question, "no-trace"))
	if err != nil {
		return fmt.Errorf("%s %w", question, err)
	}
	return nil
}

// countMail counts the questions and answers that the agents of a host got, by agent, type and
// question.
func countMail(t *testing.T, s *sqlite.Store, name string, counts map[string]int) {
	t.Helper()
	instances, err := s.Instances(t.Context(), swarm.DefaultTenant, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range instances {
		tasks, err := s.Tasks(t.Context(), key, time.Now().Add(time.Hour), 1_000_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			snap, err := s.Load(t.Context(), task.Key)
			if err != nil {
				t.Fatal(err)
			}
			for agent := range snap.Task.History {
				countHistory(t, s, task.Key, agent, counts)
			}
		}
	}
}

func countHistory(t *testing.T, s *sqlite.Store, key swarm.TaskKey, agent string, counts map[string]int) {
	t.Helper()
	entries, err := s.History(t.Context(), key, agent, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Kind != abi.KindIn {
			continue
		}
		m, err := mail.ParseMessage(entry.Message)
		if err != nil {
			t.Fatal(err)
		}
		if m.Type == mail.Request || m.Type == mail.Response {
			text := m.Payload.Body
			if i := strings.Index(text, "question "); i >= 0 {
				text, _, _ = strings.Cut(text[i:], ";")
				text += ";"
			}
			counts[fmt.Sprintf("%s@%s %s %s", agent, key.Swarm, m.Type, text)]++
		}
	}
}

// checkCounts wants each question once at each agent, and its answer at those that wait for it
// as mail: teller has it as the result of a tool, and goal gives it.
func checkCounts(t *testing.T, got map[string]int, n int) {
	t.Helper()
	for i := range n {
		for _, agent := range hosttest.EverywhereRoute {
			for _, kind := range []mail.Type{mail.Request, mail.Response} {
				if kind == mail.Response && (agent == "teller@hive" || agent == "goal@hive") {
					continue
				}
				what := fmt.Sprintf("%s %s question %d;", agent, kind, i)
				if got[what] != 1 {
					t.Errorf("%s came %d times", what, got[what])
				}
				delete(got, what)
			}
		}
	}
	for what, times := range got {
		t.Errorf("%s came %d times, and nobody asked for it", what, times)
	}
}

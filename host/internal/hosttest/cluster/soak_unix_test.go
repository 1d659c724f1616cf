//go:build unix

package cluster_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// soakHost is a host of the soak, with the ways to the servers and from the other hosts.
type soakHost struct {
	*hosttest.Process
	engine []*link
	peers  *link
	// clock is the host's own, nil for the system's. It is ahead by skew.
	clock *hosttest.WallClock
	skew  time.Duration
	// down: it answers nothing for a while, and a balancer would pass it by.
	down atomic.Bool
}

// soak is hosts on a primary and its standby.
type soak struct {
	t       *testing.T
	form    soakForm
	pair    *pgtest.Pair
	hosts   []*soakHost
	clients []*client.Client
	effects *effects
	begun   time.Time
	// posted counts tasks.
	posted atomic.Int64
	// done counts disturbances, takeovers those that end a life of a host without its doing. slowest is how long a
	// part of one took at most, by its name.
	done      map[string]int
	takeovers int
	slowest   map[string]time.Duration

	mu      sync.Mutex
	answers map[string]string // by task
	faults  map[string]int    // by what is wrong
}

// soakCallers is how many tasks are under way at a time.
const soakCallers = 12

// TestSoakCluster: three hosts that share a server under load, while hosts are killed, stand still,
// lose their ways to the server and to each other, are restarted one after the other, and the primary
// is lost. No accepted task is lost, none has a message, an event or a value twice, and each effect takes
// place as promised. In the long form, see [soakForm], the hosts' own clocks are apart and jump, and what a
// disturbance may cost in time is held against its bar.
func TestSoakCluster(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	if testing.Short() {
		t.Skip("takes a minute")
	}
	s := startSoak(t, readSoakForm(t))
	over := make(chan struct{})
	var load sync.WaitGroup
	for range soakCallers {
		load.Go(func() {
			for !isClosed(over) && !s.isOver() {
				s.ask(s.posted.Add(1) - 1)
			}
		})
	}
	s.disturb()
	close(over)
	load.Wait()
	s.report()
	s.checkTasks()
	s.checkLogs()
	s.judge()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// startSoak starts the servers and the hosts.
func startSoak(t *testing.T, form soakForm) *soak {
	t.Helper()
	s := &soak{
		t: t, form: form, pair: pgtest.StartPair(t, true), effects: newEffects(t, form.effect), begun: time.Now(),
		done: map[string]int{}, slowest: map[string]time.Duration{}, answers: map[string]string{}, faults: map[string]int{},
	}
	for _, skew := range soakSkews {
		h := &soakHost{Process: hosttest.NewProcess(t, "127.0.0.1"), skew: skew}
		h.Program = form.program
		if form.clocks {
			h.clock = hosttest.NewWallClock(t, h.Process)
			h.clock.Set(skew)
		}
		dsn := h.linkEngine(t, s.pair.DSN())
		advertise := hosttest.FreeAddress(t, "127.0.0.1")
		h.peers = newLink(t, "tcp", advertise, h.Addr)
		launchShared(t, h.Process, dsn, advertise, fmt.Sprintf(soakSwarm, s.effects.url))
		s.hosts = append(s.hosts, h)
	}
	for _, h := range s.hosts {
		s.clients = append(s.clients, h.Client())
		waitReady(s.t, h.Process)
	}
	return s
}

// linkEngine puts links on the way to servers, and returns the DSN of that way.
func (h *soakHost) linkEngine(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	q, dirs := u.Query(), []string(nil)
	for dir := range strings.SplitSeq(q.Get("host"), ",") {
		way, err := os.MkdirTemp("", "skep-way-") // a socket's path is short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(way) })
		dirs = append(dirs, way)
		h.engine = append(h.engine, newLink(t, "unix", filepath.Join(way, socket), filepath.Join(dir, socket)))
	}
	q.Set("host", strings.Join(dirs, ","))
	u.RawQuery = q.Encode()
	return u.String()
}

// disturb disturbs the hosts for the time of the soak, and each disturbance once at least.
func (s *soak) disturb() {
	list := s.disturbances()
	told := time.Now()
	s.waitAnswers(2 * soakCallers) // without a disturbance
	for n := 0; (n < len(list)*s.form.rounds || time.Since(s.begun) < s.form.length) && !s.isOver(); n++ {
		one := list[n%len(list)]
		s.effects.disturb(one.name)
		one.run(s.hosts[n/len(list)%len(s.hosts)])
		s.done[one.name]++
		for _, h := range s.hosts {
			s.until("a host is ready", func() bool { ready, _ := isReady(h.Process); return ready })
		}
		s.waitAnswers(soakCallers)
		if time.Since(told) > time.Minute {
			told = time.Now()
			s.report()
		}
	}
}

// waitAnswers waits for further answers.
func (s *soak) waitAnswers(more int) {
	s.t.Helper()
	want := s.answered() + more
	s.until("the tasks go on", func() bool { return s.answered() >= want })
}

// isOver reports whether the test has failed, or has shown without the fence what it is to show.
func (s *soak) isOver() bool {
	return s.t.Failed() || s.form.fenceless && s.countFaults()+s.effects.countDoubled() > 0
}

// until waits until a condition holds, or the soak is over.
func (s *soak) until(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !is() && !s.isOver(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Errorf("never: %s", what)
		}
	}
}

// report logs what has happened so far.
func (s *soak) report() {
	var lives []int
	for _, h := range s.hosts {
		lives = append(lives, h.Life)
	}
	s.t.Logf("%v: %d tasks answered, lives of the hosts %v, hosts fenced %d, disturbances %v, longest stalls of a task %v",
		time.Since(s.begun).Round(time.Second), s.answered(), lives, s.fenced(), s.done, s.effects.longestStalls())
}

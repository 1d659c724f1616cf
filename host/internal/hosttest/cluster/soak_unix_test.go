//go:build unix

package cluster_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
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
	// down: it answers nothing for a while, and a balancer would pass it by.
	down atomic.Bool
}

// soak is hosts on a primary and its standby.
type soak struct {
	t       *testing.T
	pair    *pgtest.Pair
	hosts   []*soakHost
	clients []*client.Client
	effects *effects
	begun   time.Time
	// posted counts tasks.
	posted atomic.Int64
	// done counts disturbances.
	done map[string]int

	mu      sync.Mutex
	answers map[string]string // by task
}

// soakCallers is how many tasks are under way at a time.
const soakCallers = 12

// TestSoakCluster: three hosts that share a server under load, while hosts are killed, stand still,
// lose their ways to the server and to each other, are restarted one after the other, and the primary
// is lost. No accepted task is lost, none has a message, an event or a value twice, and each effect takes
// place as promised. SKEP_SOAK_CLUSTER is how long that goes; each disturbance comes once if it is
// not set.
func TestSoakCluster(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	if testing.Short() {
		t.Skip("takes a minute")
	}
	length, _ := time.ParseDuration(os.Getenv("SKEP_SOAK_CLUSTER"))
	s := startSoak(t)
	over := make(chan struct{})
	var load sync.WaitGroup
	for range soakCallers {
		load.Go(func() {
			for !isClosed(over) && !t.Failed() {
				s.ask(s.posted.Add(1) - 1)
			}
		})
	}
	s.disturb(length)
	close(over)
	load.Wait()
	s.report()
	s.checkTasks()
	s.checkLogs()
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
func startSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{t: t, pair: pgtest.StartPair(t, true), effects: newEffects(t), begun: time.Now(), done: map[string]int{}, answers: map[string]string{}}
	for range 3 {
		h := &soakHost{Process: hosttest.NewProcess(t, "127.0.0.1")}
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

// disturb disturbs the hosts for a time, and each disturbance once at least.
func (s *soak) disturb(length time.Duration) {
	list := s.disturbances()
	told := time.Now()
	for n := 0; (n < len(list) || time.Since(s.begun) < length) && !s.t.Failed(); n++ {
		one := list[n%len(list)]
		s.effects.disturb(one.name)
		one.run(s.hosts[n/len(list)%len(s.hosts)])
		s.done[one.name]++
		for _, h := range s.hosts {
			waitReady(s.t, h.Process)
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

// until waits until a condition holds, or the test has failed.
func (s *soak) until(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !is() && !s.t.Failed(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Errorf("never: %s", what)
		}
	}
}

// ended is how many lives of hosts have ended, with those that still run.
func (s *soak) ended() (n int) {
	for _, h := range s.hosts {
		n += h.Life
	}
	return n
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

// checkLogs verifies the audit log of each host, and looks for panics in their output.
func (s *soak) checkLogs() {
	for _, h := range s.hosts {
		out, err := exec.Command(hosttest.Program(s.t), "audit", "verify", "-c", filepath.Join(h.Dir, "swarm.toml")).CombinedOutput()
		if err != nil {
			s.t.Errorf("%s: audit verify: %v\n%s", h.Addr, err, out)
		}
		for line := range strings.Lines(h.Log()) {
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
				s.t.Errorf("%s has written: %s", h.Addr, line)
			}
		}
	}
}

//go:build unix

package cluster_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"skep/host/internal/hosttest"
)

// generation is the number of what is in force, and of what was proposed last.
func (s *reloadSite) generation(t *testing.T) (inForce, proposed int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if err := conn.QueryRow(t.Context(), "SELECT generation, proposal FROM inforce").Scan(&inForce, &proposed); err != nil {
		t.Fatal(err)
	}
	return inForce, proposed
}

// propose begins a reload at a host that waits for the vote of another one, which stands still.
func (s *reloadSite) propose(t *testing.T, at, still int) (end <-chan error) {
	t.Helper()
	_, before := s.generation(t)
	s.hosts[still].Signal(syscall.SIGSTOP)
	ended := make(chan error, 1)
	go func() { ended <- s.reload(t.Context(), at) }()
	for range patience {
		if _, now := s.generation(t); now > before {
			return ended
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("nothing is proposed")
	return nil
}

// TestReloadKilled: a host that is killed while the others vote has changed nothing, and one that is killed
// once its file is in force has changed it everywhere.
func TestReloadKilled(t *testing.T) {
	t.Parallel()
	s := reloadSiteOf(t, 3)
	before := s.runs(t, 0)
	s.write(swarmWith("calc", "bundled:calculator"), 0, 1, 2)
	_ = s.propose(t, 2, 1)
	s.hosts[2].Kill()
	s.hosts[1].Signal(syscall.SIGCONT)
	s.write(hosttest.ScriptSwarm, 2)
	s.hosts[2].Start()
	s.waitReady(t, 2)
	s.wantNone(t, before)

	s.write(swarmWith("calc", "bundled:calculator"), 2)
	inForce, _ := s.generation(t)
	go func() { _ = s.reload(t.Context(), 2) }()
	for now := inForce; now == inForce; now, _ = s.generation(t) {
		time.Sleep(time.Millisecond)
	}
	s.hosts[2].Kill()
	s.hosts[2].Start()
	s.waitReady(t, 2)
	s.wantAll(t, before)
}

// TestReloadStopped: a host that stops does not hold up a reload, nor does one that is fenced while it is asked.
func TestReloadStopped(t *testing.T) {
	t.Parallel()
	s := reloadSiteOf(t, 3)
	before := s.runs(t, 0)
	s.write(swarmWith("calc", "bundled:calculator"), 0, 1, 2)
	end := s.propose(t, 0, 1)
	s.hosts[2].Signal(syscall.SIGTERM)
	if err := <-end; err != nil { // once host 1 is fenced
		t.Fatal(err)
	}
	s.hosts[1].Signal(syscall.SIGCONT)
	if code, _ := s.hosts[1].End(); code <= 0 {
		t.Errorf("a host that stood still has ended with code %d", code)
	}
	if code, _ := s.hosts[2].End(); code != 0 {
		t.Errorf("a host that was stopped has ended with code %d", code)
	}
	s.hosts[1].Start()
	s.hosts[2].Start()
	s.waitReady(t, 1)
	s.waitReady(t, 2)
	s.wantAll(t, before)
}

// TestReloadJoined: a host that starts with a file that is not in force takes no tasks, and says why, until
// it is in force. One that starts while others vote has a vote.
func TestReloadJoined(t *testing.T) {
	t.Parallel()
	s := reloadSiteOf(t, 3)
	before := s.runs(t, 0)
	s.hosts[2].Signal(syscall.SIGTERM)
	s.hosts[2].End()
	s.write(swarmWith("calc", "bundled:calculator"), 0, 2)
	s.hosts[2].Start()
	for range patience {
		if strings.Contains(s.hosts[2].Log(), "its file differs in agent calc") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if status, _ := s.readiness(t, 2); status == 200 {
		t.Error("a host with another file is ready")
	}
	s.wantRefusal(t, 0, 1, "its file differs in agent calc")
	s.write(swarmWith("calc", "bundled:calculator"), 1)
	end := s.propose(t, 0, 1)
	s.hosts[1].Signal(syscall.SIGCONT)
	if err := <-end; err != nil {
		t.Fatal(err)
	}
	s.waitReady(t, 2)
	now := s.wantAll(t, before)

	s.hosts[2].Signal(syscall.SIGTERM)
	s.hosts[2].End()
	s.write(hosttest.ScriptSwarm, 0, 1)
	end = s.propose(t, 0, 1)
	s.hosts[2].Start()
	for range patience { // its file is what is in force
		if strings.Count(s.hosts[2].Log(), "serving") > 2 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.hosts[1].Signal(syscall.SIGCONT)
	if err := <-end; err != nil && !strings.Contains(err.Error(), s.hosts[2].Addr) {
		t.Fatal(err)
	} else if err != nil {
		s.wantNone(t, now)
	}
}

// TestRestartedForTenant: a tenant that comes takes a restart, of one host after the other.
func TestRestartedForTenant(t *testing.T) {
	t.Parallel()
	s := reloadSiteOf(t, 2)
	s.write(hosttest.ScriptSwarm+"[tenants.globex]\ntasks = 5\n", 0, 1)
	for n, h := range s.hosts {
		h.Signal(syscall.SIGTERM)
		h.End()
		h.Start()
		s.waitReady(t, n)
	}
}

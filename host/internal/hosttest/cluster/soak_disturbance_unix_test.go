//go:build unix

package cluster_test

import (
	"strings"
	"syscall"
	"time"
)

// disturbance is what happens to one of the hosts, or to all.
type disturbance struct {
	name string
	run  func(*soakHost)
}

// disturbances are those of the soak. Each ends with all hosts started.
func (s *soak) disturbances() []disturbance {
	return []disturbance{
		{"killed, restarted at once", s.killBriefly},
		{"killed, lost", s.kill},
		{"stood still", s.standStill},
		{"reset from the server", s.resetEngine},
		{"cut off from the server", s.cutEngine},
		{"cut off from the others", s.cutPeers},
		{"standby away", func(*soakHost) { s.loseStandby() }},
		{"primary lost", func(*soakHost) { s.losePrimary() }},
		{"restarted one after the other", func(*soakHost) { s.restartAll() }},
	}
}

// killBriefly kills a host and starts it at once.
func (s *soak) killBriefly(h *soakHost) {
	h.Kill()
	h.Start()
}

// kill kills a host, and starts it once the others have taken its tasks.
func (s *soak) kill(h *soakHost) {
	fenced := s.fenced()
	h.down.Store(true)
	defer h.down.Store(false)
	h.Kill()
	s.until("a host that was killed is fenced", func() bool { return s.fenced() > fenced })
	s.waitAnswers(soakCallers / 2)
	h.Start()
}

// standStill stops a host until the others have taken its tasks. It ends when it goes on.
func (s *soak) standStill(h *soakHost) {
	fenced := s.fenced()
	h.down.Store(true)
	defer h.down.Store(false)
	h.Signal(syscall.SIGSTOP)
	s.until("a host that stands still is fenced", func() bool { return s.fenced() > fenced })
	h.Signal(syscall.SIGCONT)
	s.wantFenced(h)
	h.Start()
}

// wantFenced wants a host to end because it is fenced.
func (s *soak) wantFenced(h *soakHost) {
	before := strings.Count(h.Log(), "[cluster] ttl")
	if code, log := h.End(); code <= 0 || strings.Count(log, "[cluster] ttl") == 0 {
		s.t.Errorf("the host at %s was fenced and has ended with code %d, naming [cluster] ttl %d times before", h.Addr, code, before)
	}
}

// resetEngine ends a host's connections to the server.
func (s *soak) resetEngine(h *soakHost) {
	for range 3 {
		for _, k := range h.engine {
			k.reset()
		}
		s.waitAnswers(soakCallers / 2)
	}
}

// cutEngine lets nothing pass between a host and the server until the others have taken its tasks. What
// was held arrives then.
func (s *soak) cutEngine(h *soakHost) {
	fenced := s.fenced()
	h.down.Store(true)
	defer h.down.Store(false)
	for _, k := range h.engine {
		k.hold()
	}
	s.until("a host that is cut off from the server is fenced", func() bool { return s.fenced() > fenced })
	s.waitAnswers(1)
	for _, k := range h.engine {
		k.carry()
	}
	s.wantFenced(h)
	h.Start()
}

// soakCut is how long hosts do not reach another one, or the standby is away.
const soakCut = 3 * time.Second

// cutPeers lets nothing pass from the other hosts to one for a while, then ends their connections. None
// is fenced: it has the server.
func (s *soak) cutPeers(h *soakHost) {
	fenced := s.fenced()
	h.peers.hold()
	time.Sleep(soakCut)
	h.peers.carry()
	s.waitAnswers(soakCallers / 2)
	h.peers.reset()
	s.wantFences(fenced)
}

// loseStandby takes the standby away for a while: nothing is committed.
func (s *soak) loseStandby() {
	fenced := s.fenced()
	s.pair.Standby.Kill(s.t)
	time.Sleep(soakCut)
	s.pair.Standby.Start(s.t)
	s.waitAnswers(soakCallers / 2)
	s.wantFences(fenced)
}

// losePrimary kills the primary and promotes its standby. No host is fenced: none could be seen.
func (s *soak) losePrimary() {
	fenced := s.fenced()
	s.pair.Primary.Kill(s.t)
	s.pair.Promote(s.t)
	s.pair.Follow(s.t)
	s.waitAnswers(soakCallers / 2)
	s.wantFences(fenced)
}

// restartAll stops the hosts one after the other, and starts each before the next one.
func (s *soak) restartAll() {
	fenced := s.fenced()
	for _, h := range s.hosts {
		h.Signal(syscall.SIGTERM)
		if code, _ := h.End(); code != 0 {
			s.t.Errorf("the host at %s was stopped and has ended with code %d", h.Addr, code)
		}
		h.Start()
		waitReady(s.t, h.Process)
	}
	s.wantFences(fenced)
}

// fenced is how often hosts have fenced another one.
func (s *soak) fenced() (n int) {
	for _, h := range s.hosts {
		n += strings.Count(h.Log(), "fenced a host that is silent")
	}
	return n
}

// wantFences wants no host to have been fenced since there were so many.
func (s *soak) wantFences(n int) {
	s.t.Helper()
	if now := s.fenced(); now != n {
		s.t.Errorf("%d hosts were fenced that had the server", now-n)
	}
}

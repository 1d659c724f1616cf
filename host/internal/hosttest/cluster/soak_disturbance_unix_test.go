//go:build unix

package cluster_test

import (
	"net/http"
	"strings"
	"syscall"
	"time"
)

// disturbance is what happens to one of the hosts, or to all.
type disturbance struct {
	name string
	run  func(*soakHost)
}

// Names of disturbances that have a bar.
const (
	killedBriefly = "killed, restarted at once"
	killedForGood = "killed, lost"
	stoodStill    = "stood still"
	primaryLost   = "primary lost"
	restarted     = "restarted one after the other"
)

// disturbances are those of the soak. Each ends with all hosts started.
func (s *soak) disturbances() []disturbance {
	still, cut := disturbance{stoodStill, s.standStill}, disturbance{"cut off from the server", s.cutEngine}
	if s.form.fenceless {
		return []disturbance{still, cut}
	}
	list := []disturbance{
		{killedBriefly, s.killBriefly},
		{killedForGood, s.kill},
		still,
		{"reset from the server", s.resetEngine},
		cut,
		{"cut off from the others", s.cutPeers},
		{"standby away", func(*soakHost) { s.loseStandby() }},
		{primaryLost, func(*soakHost) { s.losePrimary() }},
		{restarted, func(*soakHost) { s.restartAll() }},
	}
	if s.form.clocks {
		list = append(list, disturbance{"clock jumped", s.jumpClock})
	}
	return list
}

// Parts of disturbances whose time has a bar.
const (
	fencingAfterKill = "from the death of a host until it is fenced"
	fencingAfterStop = "from when a host stands still until it is fenced"
	promotion        = "from the loss of the primary until its standby is promoted and has a standby"
)

// measure keeps how long a part of a disturbance took that began at a time.
func (s *soak) measure(part string, began time.Time) {
	s.slowest[part] = max(s.slowest[part], time.Since(began))
}

// killBriefly kills a host and starts it at once.
func (s *soak) killBriefly(h *soakHost) {
	s.takeovers++
	h.Kill()
	h.Start()
}

// kill kills a host, and starts it once the others have taken its tasks.
func (s *soak) kill(h *soakHost) {
	fenced := s.fenced()
	h.down.Store(true)
	defer h.down.Store(false)
	s.takeovers++
	began := time.Now()
	h.Kill()
	s.until("a host that was killed is fenced", func() bool { return s.fenced() > fenced })
	s.measure(fencingAfterKill, began)
	s.waitAnswers(soakCallers / 2)
	h.Start()
}

// standStill stops a host until the others have taken its tasks. It ends when it goes on.
func (s *soak) standStill(h *soakHost) {
	fenced := s.fenced()
	h.down.Store(true)
	defer h.down.Store(false)
	s.takeovers++
	began := time.Now()
	h.Signal(syscall.SIGSTOP)
	s.until("a host that stands still is fenced", func() bool { return s.fenced() > fenced })
	s.measure(fencingAfterStop, began)
	h.Signal(syscall.SIGCONT)
	s.wantFenced(h)
	h.Start()
}

// wantFenced wants a host to end because it is fenced. Without the fence it goes on for a while, and is killed.
func (s *soak) wantFenced(h *soakHost) {
	if s.form.fenceless {
		s.waitAnswers(soakCallers)
		h.Kill()
		return
	}
	if code, log := h.End(); code <= 0 || !strings.Contains(log, "[cluster] ttl") {
		s.t.Errorf("the host at %s was fenced and has ended with code %d", h.Addr, code)
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
	s.takeovers++
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
	began := time.Now()
	s.pair.Primary.Kill(s.t)
	s.pair.Promote(s.t)
	s.pair.Follow(s.t) // until then nothing is acknowledged
	s.measure(promotion, began)
	s.waitAnswers(soakCallers / 2)
	s.wantFences(fenced)
}

// soakSkews are how far the hosts' own clocks are ahead of the server's when they do not jump.
var soakSkews = []time.Duration{0, 40 * time.Minute, -40 * time.Minute}

// jumpClock sets a host's own clock an hour ahead, then behind, then back. None is fenced.
func (s *soak) jumpClock(h *soakHost) {
	fenced := s.fenced()
	for _, ahead := range []time.Duration{time.Hour, -time.Hour, h.skew} {
		h.clock.Set(ahead)
		s.wantClock(h, ahead)
		s.waitAnswers(soakCallers)
	}
	s.wantFences(fenced)
}

// wantClock wants a host to tell the time by its own clock in an answer.
func (s *soak) wantClock(h *soakHost, ahead time.Duration) {
	rsp, err := http.Get("http://" + h.Admin() + "/readyz")
	if err != nil {
		s.t.Errorf("the host at %s: %v", h.Addr, err)
		return
	}
	_ = rsp.Body.Close()
	told, err := http.ParseTime(rsp.Header.Get("Date"))
	if off := time.Until(told) - ahead; err != nil || off.Abs() > time.Minute {
		s.t.Errorf("the clock of the host at %s is %v from where it was set, %v", h.Addr, off, err)
	}
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
	for range s.fenced() - n {
		s.fault(wrongFence, "a host was fenced that had the server")
	}
}

package crash_test

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"skep/host/internal/hosttest"
)

// soakAway is how long a host that others ask is down: longer than the first repeats of its partners.
const soakAway = 5 * time.Second

// roughly are the disturbances of the first half.
func (s *soak) roughly() []func() {
	return append([]func(){
		func() { s.kill(s.e.Hive, 0) },
		func() { s.kill(s.e.Depot, min(soakAway, s.every)) },
	}, s.gently()...)
}

// gently are the disturbances after which no host begins anew.
func (s *soak) gently() []func() {
	list := []func(){func() { s.reload(s.e.Hive) }, func() { s.reload(s.e.Depot) }}
	if s.broker != nil && s.every > soakAway { // it takes 10 s to start
		list = append(list, func() {
			s.broker.Kill()
			time.Sleep(min(soakAway, s.every))
			s.broker.Start(s.t)
		})
	}
	return list
}

// kill kills a host, and starts it again after a time.
func (s *soak) kill(p *hosttest.Process, away time.Duration) {
	p.Kill()
	time.Sleep(away)
	p.Start()
}

// visitor is a partner that comes and goes with the reloads.
const visitor = "\n[gateways.acp.partners.visitor]\nids = [\"visitor-*\"]\n"

// reload lets a partner in, or takes it out of the file again.
func (s *soak) reload(p *hosttest.Process) {
	file := filepath.Join(p.Dir, "swarm.toml")
	text := hosttest.ReadText(s.t, file)
	without := strings.Replace(text, visitor, "", 1)
	if without == text {
		without += visitor
	}
	if err := os.WriteFile(file, []byte(without), 0o600); err != nil {
		s.t.Error(err)
		return
	}
	if _, err := s.ops[p].Reload(s.t.Context()); err != nil {
		s.t.Errorf("reload: %v", err)
		return
	}
	s.reloads++
}

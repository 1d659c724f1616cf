//go:build unix

package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"skep/host/internal/hosttest"
)

// soakAnswer is what the answers of soak's tasks begin with. The answers of both effects without a key follow.
const soakAnswer = "boss got [::timer::] "

// checkTasks checks every task that was posted: what it has answered, its effects, its events and its
// messages, through any host.
func (s *soak) checkTasks() {
	keys := map[string]string{}
	inDoubt, repeated := 0, 0
	for n := range s.posted.Load() {
		id := soakTask(n)
		answer, has := s.answers[id]
		if !has {
			continue // said where it was asked for
		}
		inDoubt += s.checkAnswer(id, answer)
		repeated += s.checkEffects(id, keys)
		s.checkClaim(n)
	}
	if !s.isOver() {
		s.checkMail()
	}
	s.t.Logf("%d tasks, %d effects repeated under their key, %d without a key in doubt", s.posted.Load(), repeated, inDoubt)
	if most := s.takeovers * soakCallers; repeated > most {
		s.fault(wrongRepeats, "%d effects were repeated, with %d takeovers and %d tasks at a time", repeated, s.takeovers, soakCallers)
	}
}

// checkAnswer checks what a task has answered of its effects without a key: each took place once if it was
// answered, and once at most if its turn does not know. It returns how many are in doubt.
func (s *soak) checkAnswer(id, answer string) (inDoubt int) {
	text, is := strings.CutPrefix(answer, soakAnswer)
	if !is {
		s.fault(wrongAnswer, "%s has the answer %q", id, answer)
		return 0
	}
	doubts := strings.Count(text, "in_doubt") + strings.Count(text, "UNAVAILABLE")
	for _, at := range []int{0, 3} {
		path := fmt.Sprintf("/%s/%d", id, at)
		answered := strings.Contains(text, "re:"+path)
		if took := len(s.effects.callsOf(path)); took > 1 || answered && took != 1 {
			s.fault(repeatedOnce, "%s: what is not to be repeated took place %d times; answered: %v", path, took, answered)
		}
		if !answered {
			inDoubt++
		}
	}
	if inDoubt > doubts || inDoubt == 0 && text != fmt.Sprintf("re:/%s/0 re:/%s/3", id, id) {
		s.fault(wrongAnswer, "%s has the answer %q", id, answer)
	}
	return inDoubt
}

// checkEffects checks the effects of a task that have keys: each took place, every time the same, with a key
// that no other effect has. It returns how many were repeated.
func (s *soak) checkEffects(id string, keys map[string]string) (repeated int) {
	for _, path := range []string{"/" + id + "/1", "/" + id + "/2"} {
		all := s.effects.callsOf(path)
		if len(all) == 0 {
			s.fault(wrongEffect, "%s did not take place", path)
			continue
		}
		if other := keys[all[0].key]; all[0].key == "" || other != "" {
			s.fault(wrongEffect, "%s has the key %q, of %q", path, all[0].key, other)
		}
		keys[all[0].key] = path
		if slices.ContainsFunc(all, func(again effect) bool { return again != all[0] }) {
			s.fault(wrongEffect, "%s was sent otherwise: %v", path, all)
		}
		repeated += len(all) - 1
	}
	return repeated
}

// claimed and lostClaim are what a kv.cas answers.
const claimed, lostClaim = `{"ok":true}`, `{"ok":false}`

// checkClaim checks that one of the tasks that contend for a value has got it.
func (s *soak) checkClaim(n int64) {
	if n%soakPair != soakPair-1 {
		return
	}
	winners := 0
	for of := n - soakPair + 1; of <= n; of++ {
		switch body := s.effects.body("/" + soakTask(of) + "/2"); body {
		case claimed:
			winners++
		case lostClaim:
		default:
			s.fault(wrongClaim, "%s: a kv.cas has answered %q", soakTask(of), body)
		}
	}
	if winners != 1 {
		s.fault(wrongClaim, "%d tasks have got the value of %s and the ones before it, want 1", winners, soakTask(n))
	}
}

// checkMail checks the events and messages of all tasks that have answered.
func (s *soak) checkMail() {
	var all sync.WaitGroup
	const workers = 8
	for w := range int64(workers) {
		all.Go(func() {
			for n := w; n < s.posted.Load(); n += workers {
				id := soakTask(n)
				if _, has := s.answers[id]; !has {
					continue
				}
				for _, fault := range taskFaults(s.t.Context(), s.clients[rand.IntN(len(s.clients))], id, map[string]int{"boss": 4, "math": 2}) {
					s.fault(wrongMail, "%s: %s", id, fault)
				}
			}
		})
	}
	all.Wait()
}

// checkLogs verifies the audit log of each host, and looks for panics in their output.
func (s *soak) checkLogs() {
	for _, h := range s.hosts {
		out, err := exec.Command(hosttest.Program(s.t), "audit", "verify", "-c", filepath.Join(h.Dir, "swarm.toml")).CombinedOutput()
		if err != nil {
			s.t.Errorf("%s: audit verify: %v\n%s", h.Addr, err, out)
		}
		log := h.Log()
		for line := range strings.Lines(log) {
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
				s.t.Errorf("%s has written: %s", h.Addr, line)
			}
		}
		if warned := strings.Contains(log, "the clock of this host differs from the server's"); warned != (h.clock != nil && h.skew != 0) {
			s.t.Errorf("%s warns of its clock: %v, which is ahead by %v", h.Addr, warned, h.skew)
		}
	}
}

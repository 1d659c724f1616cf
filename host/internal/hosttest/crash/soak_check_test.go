package crash_test

import (
	"os/exec"
	"path/filepath"
	"strings"

	"skep/host/internal/hosttest"
)

// checkLogs verifies the audit log and the log of messages of both hosts, and fails for a panic or
// an error in their output.
func (s *soak) checkLogs() {
	for name, p := range s.hosts() {
		file := filepath.Join(p.Dir, "swarm.toml")
		for _, command := range [][]string{{"audit", "verify", "-c", file}, {"gateway", "log", "--verify", "-c", file}} {
			out, err := exec.Command(hosttest.Program(s.t), command...).CombinedOutput()
			if err != nil {
				s.t.Errorf("%s: %s: %v\n%s", name, command[:2], err, out)
			}
			s.t.Logf("%s: %s: %s", name, command[:2], out)
		}
		for line := range strings.Lines(p.Log()) {
			if strings.Contains(line, `"level":"ERROR"`) || strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
				s.t.Errorf("%s has told: %s", name, line)
			}
		}
	}
}

// checkMail counts the questions at the agents: one that was answered came once to each agent on its
// way, any other one at most once.
func (s *soak) checkMail() {
	got := map[string]int{}
	for name, p := range s.hosts() {
		p.Kill()
		store := hosttest.OpenStore(s.t, p.Data())
		countMail(s.t, store, name, got)
		if err := store.Close(); err != nil {
			s.t.Error(err)
		}
	}
	for what, times := range got {
		if times != 1 {
			s.t.Errorf("%s came %d times", what, times)
		}
	}
	for _, id := range s.tally.answers {
		way := []string{"goal@hive"}
		if strings.HasPrefix(id, "all-") {
			way = hosttest.EverywhereRoute
		}
		for _, agent := range way {
			if got[agent+" request question "+id+";"] != 1 {
				s.t.Errorf("%s has not got question %s", agent, id)
			}
		}
	}
}

// checkBroker compares the messages that were set aside at the broker with what was sent and is no
// message.
func (s *soak) checkBroker() {
	if s.broker == nil {
		return
	}
	want := s.tally.rows["amp-queue"].refused
	hosttest.Eventually(s.t, "what was no message is set aside", func() bool { return s.broker.Waiting(s.t, "amp.dead") == want })
}

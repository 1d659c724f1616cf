//go:build unix

package cluster_test

import (
	"os"
	"testing"
	"time"

	"skep/host/internal/hosttest"
)

// soakForm is a form of the soak.
type soakForm struct {
	// length is how long the hosts are disturbed at least, rounds how often by each disturbance.
	length time.Duration
	rounds int
	// program is what the hosts run, empty for [hosttest.Program].
	program string
	// clocks: the hosts' own clocks are apart, and jump.
	clocks bool
	// judged: a bar of a time that is missed is an error, and so are too few tasks.
	judged bool
	// fenceless: the hosts' groups are not fenced. They are disturbed by what a fence is there for.
	fenceless bool
	// patience bounds one task.
	patience time.Duration
	// effect is how long an effect takes at most.
	effect time.Duration
}

// Variables of the forms. lengthEnv makes the long form take so long; fencelessEnv takes the fence away.
const (
	lengthEnv    = "SKEP_SOAK_CLUSTER"
	fencelessEnv = "SKEP_SOAK_FENCELESS"
)

// readSoakForm reads the form from the environment: the short one without.
func readSoakForm(t *testing.T) soakForm {
	t.Helper()
	if os.Getenv(fencelessEnv) != "" {
		// Effects are slow: turns are in the middle of one at the host that is woken, and at the one that has its tasks.
		return soakForm{
			rounds: 10, program: hosttest.ProgramWith(t, "-tags", "nofence"), fenceless: true, patience: 40 * time.Second, effect: 2 * time.Second,
		}
	}
	form := soakForm{rounds: 1, patience: 4 * time.Minute, effect: 150 * time.Millisecond}
	if text := os.Getenv(lengthEnv); text != "" {
		length, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %v", lengthEnv, err)
		}
		form.length, form.clocks, form.judged = length, true, true
		form.program = hosttest.WallClockProgram(t)
	}
	return form
}

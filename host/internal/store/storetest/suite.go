// Package storetest is the definition of correct for the engines behind
// [swarm.Store]: what [Run] asserts is what the port promises. It owns no
// engine and must not know one: whatever an engine does beyond the port is
// tested beside it.
package storetest

import (
	"io"
	"os"
	"testing"

	"skep/host/internal/swarm"
)

// Engine is a store that can be closed, as Run must to open it again.
type Engine interface {
	swarm.Store
	io.Closer
}

// Open opens the engine's store in dir, which exists. It fails the test when
// it cannot. The suite closes the store.
type Open func(t *testing.T, dir string) Engine

// groups are the cases that need one open store.
var groups = []struct {
	name  string
	cases map[string]func(*testing.T, Engine)
}{
	{"accept", acceptCases},
	{"submission", submissionCases},
	{"pending", pendingCases},
	{"commit", commitCases},
	{"queue", queueCases},
	{"letter", letterCases},
	{"read", readCases},
	{"tail", tailCases},
	{"list", listCases},
	{"isolation", isolationCases},
	{"payload", payloadCases},
	{"record", recordCases},
	{"kv", kvCases},
	{"blob", blobCases},
	{"prune", pruneCases},
	{"tenant", tenantCases},
	{"concurrency", concurrencyCases},
}

// Run asserts that an engine keeps the promises of the port. Call it from a
// test that does nothing else: the crash test runs that test again in a child
// process, as the process to be killed.
func Run(t *testing.T, open Open) {
	if dir := os.Getenv(crashDir); dir != "" {
		crashChild(t, open(t, dir))
		return
	}
	if dir := os.Getenv(eraseDir); dir != "" {
		eraseChild(t, open(t, dir))
		return
	}
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for name, run := range group.cases {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					run(t, openIn(t, open, t.TempDir()))
				})
			}
		})
	}
	for name, run := range reopenCases {
		t.Run("reopen/"+name, func(t *testing.T) {
			t.Parallel()
			run(t, open)
		})
	}
}

// openIn opens a store and closes it when the test ends.
func openIn(t *testing.T, open Open, dir string) Engine {
	t.Helper()
	s := open(t, dir)
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t *testing.T, s Engine) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
}

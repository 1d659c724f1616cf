// Package storetest owns the definition of a correct engine behind [swarm.Store],
// [auth.TokenStore], [state.Store] and [quarantine.Store]: an engine is correct if [Run] passes. There is one suite
// function for each port, which [Run] calls one after the other. The package must
// not know any engine; an engine tests beside itself what it does beyond the ports.
package storetest

import (
	"io"
	"os"
	"testing"

	"skep/host/internal/api/auth"
	"skep/host/internal/gateway/state"
	"skep/host/internal/quarantine"
	"skep/host/internal/swarm"
)

// Store is an open store of an engine.
type Store interface {
	swarm.Store
	auth.TokenStore
	GatewayState() state.Store
	quarantine.Store
	io.Closer
}

// Place is where an engine keeps one store: a directory, or a DSN. The suite passes
// it on unread, also to child processes through their environment.
type Place string

// Engine makes the stores that the suite tests. Its functions fail the test if they
// cannot do their work.
type Engine struct {
	// NewPlace returns the place of a store that does not exist yet. The engine
	// removes it when the test ends.
	NewPlace func(t *testing.T) Place
	// Open opens the store at a place with the quotas of [Storage], and makes it the first
	// time. The suite closes it; only then may the same place be opened again.
	Open func(t *testing.T, at Place) Store
}

// Storage is the storage quota of tenants in the suite, in bytes, 0 for none.
func Storage(tenant string) int64 {
	if tenant == narrow {
		return 4 << 10
	}
	return 0
}

// narrow is the tenant that has a storage quota.
const narrow = "narrow"

// cases are the tests that need one open store, by name.
type cases map[string]func(*testing.T, Store)

// Run tests all ports of an engine. The calling test must do nothing else: crash
// tests run the same test again in a child process, which they kill.
func Run(t *testing.T, e Engine) {
	if runChild(t, e) {
		return
	}
	RunTaskLog(t, e)
	RunTurnJournal(t, e)
	RunKV(t, e)
	RunBlobs(t, e)
	RunOutboxes(t, e)
	RunTenants(t, e)
	RunRetention(t, e)
	RunTokens(t, e)
	RunGatewayState(t, e)
	RunQuarantine(t, e)
	RunDurability(t, e)
}

// RunTaskLog tests [swarm.TaskLog].
func RunTaskLog(t *testing.T, e Engine) {
	run(t, e, "accept", acceptCases)
	run(t, e, "submission", submissionCases)
	run(t, e, "pending", pendingCases)
	run(t, e, "commit", commitCases)
	run(t, e, "queue", queueCases)
	run(t, e, "read", readCases)
	run(t, e, "tail", tailCases)
	run(t, e, "list", listCases)
	run(t, e, "paused", pausedCases)
	run(t, e, "task filter", taskFilterCases)
	run(t, e, "isolation", isolationCases)
	run(t, e, "payload", payloadCases)
	run(t, e, "concurrency", concurrencyCases)
}

// RunTurnJournal tests [swarm.TurnJournal].
func RunTurnJournal(t *testing.T, e Engine) { run(t, e, "record", recordCases) }

// RunKV tests [swarm.KV] and the writes it reads.
func RunKV(t *testing.T, e Engine) { run(t, e, "kv", kvCases) }

// RunBlobs tests [swarm.Blobs] and the writes it reads.
func RunBlobs(t *testing.T, e Engine) { run(t, e, "blob", blobCases) }

// RunOutboxes tests [swarm.Outboxes] and the writes it reads.
func RunOutboxes(t *testing.T, e Engine) { run(t, e, "letter", outboxCases) }

// RunTenants tests [swarm.Tenants].
func RunTenants(t *testing.T, e Engine) {
	run(t, e, "tenant", tenantCases)
	run(t, e, "usage", usageCases)
}

// RunRetention tests [swarm.Retention].
func RunRetention(t *testing.T, e Engine) { run(t, e, "prune", pruneCases) }

// RunTokens tests [auth.TokenStore].
func RunTokens(t *testing.T, e Engine) { run(t, e, "tokens", tokenCases) }

// RunGatewayState tests [state.Store].
func RunGatewayState(t *testing.T, e Engine) { run(t, e, "gateway state", gatewayStateCases) }

// RunQuarantine tests [quarantine.Store].
func RunQuarantine(t *testing.T, e Engine) { run(t, e, "quarantine", quarantineCases) }

// RunDurability tests what a store holds after it was closed, or its process
// killed, and opened again. The calling test must do nothing else; see [Run].
func RunDurability(t *testing.T, e Engine) {
	if runChild(t, e) {
		return
	}
	for name, test := range reopenCases {
		t.Run("reopen/"+name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// run runs each case on a new store.
func run(t *testing.T, e Engine, group string, list cases) {
	t.Run(group, func(t *testing.T) {
		for name, test := range list {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, openAt(t, e, e.NewPlace(t)))
			})
		}
	})
}

// runChild does the work of a child process of a crash test. It reports false in
// every other process.
func runChild(t *testing.T, e Engine) bool {
	if at := os.Getenv(crashPlace); at != "" {
		crashChild(t, e.Open(t, Place(at)))
		return true
	}
	if at := os.Getenv(erasePlace); at != "" {
		eraseChild(t, e.Open(t, Place(at)))
		return true
	}
	return false
}

// openAt opens a store and closes it when the test ends.
func openAt(t *testing.T, e Engine, at Place) Store {
	t.Helper()
	s := e.Open(t, at)
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t *testing.T, s Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
}

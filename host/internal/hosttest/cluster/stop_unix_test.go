//go:build unix

package cluster_test

import (
	"strings"
	"syscall"
	"testing"

	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// TestStopWhileTurnCommits: a host whose turn cannot commit, because the server is away, stops in a bounded
// time, alone on its server and beside others. What it had accepted goes on at the next start.
func TestStopWhileTurnCommits(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"alone": true, "shared": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hosttest.SkipOnServer(t, "its host has a server of its own")
			server := pgtest.Start(t)
			p := hosttest.NewProcess(t, "127.0.0.1")
			file := sharedFile(server.DSN(), p.Addr, hosttest.ScriptSwarm)
			if alone {
				file, _, _ = strings.Cut(file, "[cluster]")
			}
			writeStoreKey(t, p)
			p.Launch(file)
			c := p.Client()
			waitReady(t, p)
			post := slowTask("t1")
			if _, err := c.PostAsync(t.Context(), post); err != nil {
				t.Fatal(err)
			}
			server.Kill(t)
			p.Signal(syscall.SIGTERM)
			if code, log := p.End(); code < 0 {
				t.Fatalf("the host does not end: %s", log)
			}
			server.Start(t)
			p.Start()
			if err := hosttest.CheckAnswer(t.Context(), p.Client(), post, false, "boss got [Re: s] echo: t1"); err != nil {
				t.Error(err)
			}
		})
	}
}

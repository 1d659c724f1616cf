//go:build unix

package cluster_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"skep/host/internal/hosttest"
	"skep/host/internal/quarantine"
	"skep/host/internal/store/pgtest"
)

// TestStopWhileTurnCommits: a host whose turn cannot commit, because the server is away or stands still with its
// connections open, stops in a bounded time, alone on its server and beside others. What it had accepted goes on
// at the next start. Its turn is not to blame for a stop that the others could not be told of.
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
			first, post := slowTask("t0"), slowTask("t1")
			if err := hosttest.CheckAnswer(t.Context(), c, first, false, "boss got [Re: s] echo: t0"); err != nil {
				t.Fatal(err)
			}
			if _, err := c.PostAsync(t.Context(), post); err != nil {
				t.Fatal(err)
			}
			leave, back := server.Freeze, server.Thaw
			if alone {
				leave, back = server.Kill, server.Start
			}
			leave(t)
			p.Signal(syscall.SIGTERM)
			code, log := p.End()
			if code < 0 || !strings.Contains(log, "the host stops and waits no longer for its PostgreSQL server") {
				t.Fatalf("the host does not end, or does not tell what it gives up: %s", log)
			}
			if !alone {
				wantEndedLife(t, p)
			}
			back(t)
			p.Start()
			if err := hosttest.CheckAnswer(t.Context(), p.Client(), post, false, "boss got [Re: s] echo: t1"); err != nil {
				t.Error(err)
			}
		})
	}
}

// wantEndedLife wants a host to have noted that it ended in order.
func wantEndedLife(t *testing.T, p *hosttest.Process) {
	t.Helper()
	s, err := quarantine.OpenRunningSet(filepath.Join(p.Data(), "running"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !s.PriorEnded() {
		t.Error("the host has not noted that it ended in order")
	}
}

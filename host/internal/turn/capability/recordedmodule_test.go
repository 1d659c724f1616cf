package capability

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// awayModules finds modules when it was asked some times.
type awayModules struct {
	storedModules
	fails atomic.Int64
}

func (a *awayModules) Module(ctx context.Context, digest string) (Module, error) {
	if a.fails.Add(-1) >= 0 {
		return nil, fmt.Errorf("read module %s: %w", digest, swarm.ErrUnavailable)
	}
	return a.storedModules.Module(ctx, digest)
}

// A store that is away for a moment gives no recorded turn up: it is run again on its module once that can be read.
func TestRerunWaitsForItsModule(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.start(3, false)
	_, _ = h.ask()
	h.stop()
	h.modules["boss"] = guest{"m2", mixed}
	away := &awayModules{storedModules: storedModules{"m1": guest{"m1", mixed}}}
	away.fails.Store(2)
	h.find = away
	h.start(0, false)
	defer h.stop()
	if a, err := h.ask(); err != nil || !strings.Contains(a.Body, "and answer to four") || away.fails.Load() >= 0 {
		t.Errorf("%q, %v", a.Body, err)
	}
}

// A recorded turn whose module cannot be read until its time is up fails as the host's fault: an answered turn does
// not begin anew, as it does without its module.
func TestRerunModuleUnread(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.start(3, false)
	_, _ = h.ask()
	h.stop()
	h.change = func(d *swarm.Definition) { d.Agents[0].Limits.Wall = 200 * time.Millisecond }
	h.modules["boss"] = guest{"m2", mixed}
	away := &awayModules{}
	away.fails.Store(1 << 30)
	h.find = away
	h.start(0, false)
	defer h.stop()
	if a, err := h.ask(); err != nil || !strings.Contains(a.Body, "failed (host): the turn began on the module m1") {
		t.Errorf("%q, %v", a.Body, err)
	}
}

// An action that is run again waits for its recorded module as its turn does.
func TestActionWaitsForItsModule(t *testing.T) {
	t.Parallel()
	waited := false
	for dies := range int64(8) {
		h := newHost(t)
		a, _ := h.newAction("shop", func(*visit, string) (string, *turn.Exit) { return `"tea"`, nil })
		away := &awayModules{storedModules: storedModules{"a1": a.Module}}
		away.fails.Store(1)
		h.find = away
		h.modules["boss"] = guest{"m1", tells(`fetch one`, `action {"name":"shop","args":{}}`, `fetch two`)}
		h.start(dies, false)
		_, _ = h.ask()
		h.stop()
		a.Module = actor{guest{digest: "a2"}, func(*visit, string) (string, *turn.Exit) { return `"coffee"`, nil }, &atomic.Int64{}}
		h.start(0, false)
		got, err := h.ask()
		h.stop()
		waited = waited || away.fails.Load() < 0
		if err != nil || strings.Contains(got.Body, "failed") {
			t.Errorf("died at write %d: %q, %v", dies, got.Body, err)
		}
	}
	if !waited {
		t.Error("no action was run again on its module")
	}
}

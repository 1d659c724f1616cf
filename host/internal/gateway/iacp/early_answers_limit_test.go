package iacp

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
	"skep/host/internal/gateway/state"
)

// partnerRuntime is a runtime that has one partner and keeps no events.
type partnerRuntime struct{ gateway.Runtime }

// State implements [gateway.Runtime].
func (partnerRuntime) State() state.Store { return nil }

// Partner implements [gateway.Runtime].
func (partnerRuntime) Partner(realm string) (gateway.Partner, bool) {
	return gateway.Partner{Name: realm, Timeout: time.Minute}, realm == "depot"
}

// Record implements [gateway.Runtime].
func (partnerRuntime) Record(gateway.Event) {}

// TestEarlyAnswersLimits (I-026): the answers that are kept for their questions are bounded for a
// connection and for its realm. They leave their places when their connection ends, or the time in
// which a question waits for its answer is over.
func TestEarlyAnswersLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Runtime: partnerRuntime{}})
		n := 0
		keep := func(c *conn, realm string, bytes int) bool {
			n++
			m := message.New(message.TaskResponse, "depot-1", map[string]any{"status": "completed"})
			m.Parent = fmt.Sprint(n)
			return g.early.keep(c, gateway.Caller{Realm: realm}, m, make([]byte, bytes))
		}
		keepMost := func(c *conn, bytes int) (kept int) {
			for keep(c, "depot", bytes) {
				kept++
			}
			return kept
		}
		conns := make([]*conn, 6)
		for i := range conns {
			conns[i] = &conn{g: g}
		}
		if keep(conns[0], "stranger", 1) {
			t.Error("an answer of a realm that is asked nothing is kept")
		}
		for round := range 3 {
			for i, want := range []int{64, 64, 64, 64, 0} {
				if got := keepMost(conns[i], 100); got != want {
					t.Errorf("round %d: connection %d keeps %d answers, want %d", round, i, got, want)
				}
			}
			g.early.leave(conns[0])
			if got := keepMost(conns[5], 1<<20); got != 4 {
				t.Errorf("round %d: a connection keeps %d answers of 1 MiB, want 4", round, got)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(g.early.byID)+len(g.early.byConn)+len(g.early.byRealm) > 0 {
				t.Errorf("round %d: %d answers stay", round, len(g.early.byID))
			}
		}
	})
}

package iacp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// silentRuntime is a runtime that keeps nothing of what it takes, and never answers.
type silentRuntime struct{ gatewaytest.Unrecorded }

// Ask implements [gateway.Runtime].
func (silentRuntime) Ask(_ context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	return gateway.Exchange{Caller: c, ID: a.ID, Agent: a.To[0], Note: a.Note, Accepted: time.Now()}, nil
}

// Wait implements [gateway.Runtime].
func (silentRuntime) Wait(ctx context.Context, _ gateway.Exchange) (gateway.Answer, error) {
	<-ctx.Done()
	return gateway.Answer{}, context.Cause(ctx)
}

// Find implements [gateway.Runtime].
func (silentRuntime) Find(context.Context, gateway.Caller, string) (gateway.Exchange, error) {
	return gateway.Exchange{}, gateway.ErrUnknown
}

// newSilentSite is a site whose agents never answer.
func newSilentSite(t *testing.T) *site {
	return newSite(t, func(o *iacp.Options) { o.Runtime = silentRuntime{gatewaytest.Unrecorded{Runtime: o.Runtime}} })
}

// askLarge asks the agent what it never answers, by a question of so many bytes.
func askLarge(t *testing.T, c *iacptest.Conn, priority string, bytes int) {
	t.Helper()
	m := task(strings.Repeat("x", bytes))
	m.Metadata = map[string]any{"priority": priority, "response_timeout": 3600}
	exchange(t, c, m, "ack")
}

// TestOpenQuestionMemory (I-006): a question that waits for its agent's answer, and a queue that is
// empty, hold nothing of the content of messages. It is not parallel: it looks at the whole process.
func TestOpenQuestionMemory(t *testing.T) {
	const size = 2 << 20
	c := newSilentSite(t).dial(t, "ack")
	askLarge(t, c, "normal", size)
	before, _ := gatewaytest.Footprint()
	for _, priority := range []string{"low", "normal", "high", "urgent"} {
		for range 8 {
			askLarge(t, c, priority, size)
		}
	}
	var after int64
	hosttest.Eventually(t, "open questions hold no content", func() bool {
		after, _ = gatewaytest.Footprint()
		return after-before < size/2
	})
	t.Logf("32 questions of %d bytes hold %d", size, after-before)
}

// TestFirstMessageMemory (I-006, D-I1): a connection keeps neither the message in which a peer without a
// handshake has shown its credential, nor that credential.
func TestFirstMessageMemory(t *testing.T) {
	const n, size = 40, 60_000
	s := newSilentSite(t)
	open := func(size int) int64 {
		before, _ := gatewaytest.Footprint()
		for range n {
			m := shownTask(size)
			m.Metadata["ack"] = true
			exchange(t, iacptest.Begun(s.raw(t)), m, "ack")
			exchange(t, s.padded(t, size), task("after a credential"), "ack")
		}
		after, _ := gatewaytest.Footprint()
		return (after - before) / n
	}
	open(10)
	if small, large := open(10), open(size); large-small > size/2 {
		t.Errorf("two connections hold %d bytes after small messages, %d after large ones", small, large)
	}
}

// padded is a connection whose credential came with so many bytes that mean nothing.
func (s *site) padded(t *testing.T, bytes int) *iacptest.Conn {
	t.Helper()
	c := iacptest.Begun(s.raw(t))
	exchange(t, c, iacptest.New("handshake", "depot-1", "", map[string]any{"versions": []string{"1.0"}, "features": []string{"ack"}}), "handshake_ack")
	exchange(t, c, iacptest.New("auth", "depot-1", "", map[string]any{"token": token, "padding": strings.Repeat("x", bytes)}), "auth_result")
	return c
}

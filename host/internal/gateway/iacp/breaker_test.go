package iacp_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
	"skep/spec/mail"
)

// unreliableAgent is an agent that fails while bad is set, and counts what it is asked.
type unreliableAgent struct {
	bad   atomic.Bool
	asked atomic.Int64
}

func newUnreliableAgent(s *site) *unreliableAgent {
	a := new(unreliableAgent)
	a.bad.Store(true)
	s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "unreliable", Capabilities: []gateway.Capability{{ID: "repeat"}}},
		func(context.Context, *gatewaytest.Turn) gateway.Answer {
			a.asked.Add(1)
			if a.bad.Load() {
				return gateway.Answer{Outcome: gateway.Failed, Body: "no"}
			}
			return gateway.Answer{Outcome: gateway.Done, Body: "yes"}
		})
	return a
}

func (a *unreliableAgent) question(from string) iacptest.Message {
	return iacptest.New("task_request", from, "unreliable", map[string]any{"task_type": "mail.message", "parameters": map[string]any{"body": "well?"}})
}

// TestCircuitOpens (I-070, I-075, V-I39): after five failures in a row, or ten among twenty, an
// agent gets no question of the realm for a while: AGENT_NOT_FOUND says when to come again. A
// repeat has its answer, a group another agent, and other agents and realms are not concerned.
func TestCircuitOpens(t *testing.T) {
	t.Parallel()
	for name, good := range map[string][]bool{
		"in a row": make([]bool, 5), "among twenty": {true, false, true, false, true, false, true, false, true, false, true, false, true, false, true, false, true, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(o *iacp.Options) {
				o.FirstPause = time.Hour
				admitRealm(o.Runtime.(*gatewaytest.Runtime), "mill", "token-of-mill", nil)
			})
			agent, c := newUnreliableAgent(s), s.dial(t)
			var last iacptest.Message
			for _, good := range good {
				agent.bad.Store(!good)
				last = agent.question("depot-1")
				exchange(t, c, last, "task_response")
			}
			for range 2 {
				got := exchange(t, c, agent.question("depot-1"), "error_response")
				after, _ := got.Payload["retry_after"].(float64)
				if got.Payload["error_code"] != "AGENT_NOT_FOUND" || got.Payload["retry_allowed"] != true || after < 1 || after > 60 || !strings.Contains(got.Raw, `"failing"`) {
					t.Errorf("got %s", got.Raw)
				}
			}
			if n := agent.asked.Load(); n != int64(len(good)) {
				t.Errorf("the agent was asked %d times, want %d", n, len(good))
			}
			if got := exchange(t, c, last, "task_response"); got.Payload["status"] != "failed" {
				t.Errorf("the repeat has %s", got.Raw)
			}
			exchange(t, c, task("of another agent"), "task_response")
			group := iacptest.New("task_request", "depot-1", "", map[string]any{"description": "repeat"})
			if err := c.Send([]byte(strings.Replace(string(group.Text()), `"message_type"`, `"recipient":{"group":{"capabilities":["repeat"]}},"message_type"`, 1))); err != nil {
				t.Fatal(err)
			}
			if got := read(t, c, "task_response"); got.Sender.ID != "echo" {
				t.Errorf("the group answers %s", got.Raw)
			}
			mill, err := iacptest.Dial(s.addr, "token-of-mill")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = mill.Close() })
			exchange(t, mill, agent.question("mill-1"), "task_response")
		})
	}
}

// TestCircuitRecovers (I-075, V-I39): an agent that fails is probed after a while; when it answers
// it gets all questions again.
func TestCircuitRecovers(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *iacp.Options) { o.FirstPause = time.Millisecond })
	agent, c := newUnreliableAgent(s), s.dial(t)
	for range 5 {
		exchange(t, c, agent.question("depot-1"), "task_response")
	}
	agent.bad.Store(false)
	hosttest.Eventually(t, "the agent is asked again", func() bool {
		if err := c.Send(agent.question("depot-1").Text()); err != nil {
			t.Fatal(err)
		}
		got, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		return got.Type == "task_response"
	})
	for range 10 {
		if got := exchange(t, c, agent.question("depot-1"), "task_response"); got.Payload["status"] != "completed" {
			t.Errorf("got %s", got.Raw)
		}
	}
}

// carryTo carries a question of our agent to an agent of the partner.
func (s *site) carryTo(t *testing.T, agent string) gateway.Carried {
	t.Helper()
	p, _ := s.rt.Partner("depot")
	d := delivery(uuid.NewString())
	d.Wrapper.Payload.Recipients = []mail.Address{{Type: mail.Agent, Name: agent + "@depot"}}
	return s.g.Carry(t.Context(), p, d)
}

// TestForeignCircuit (I-075, V-I39): a foreign agent that fails gets no message for a while, which
// costs its neighbour none, and is probed after it.
func TestForeignCircuit(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{"it stays open": time.Hour, "it is probed": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(o *iacp.Options) { o.FirstPause = pause })
			var bad atomic.Bool
			var asked atomic.Int64
			bad.Store(true)
			c := s.dial(t)
			go func() {
				for {
					m, err := c.Read()
					if err != nil {
						return
					}
					reply := m.Reply("task_response", map[string]any{"status": "completed", "result": "17"})
					if m.Recipient.ID == "depot-1" {
						asked.Add(1)
						if bad.Load() {
							reply = m.Reply("error_response", map[string]any{"error_code": "TIMEOUT", "error_message": "later", "retry_allowed": true})
						}
					}
					_ = c.Send(reply.Text()) // the connection may have ended
				}
			}()
			for range 5 {
				if got := s.carryTo(t, "depot-1"); got.State != gateway.Later || got.Wait != 0 {
					t.Fatalf("got %+v", got)
				}
			}
			if pause == time.Hour {
				if got := s.carryTo(t, "depot-1"); got.State != gateway.Later || got.Wait <= 0 || asked.Load() != 5 {
					t.Errorf("got %+v after %d questions", got, asked.Load())
				}
				if got := s.carryTo(t, "depot-2"); got.State != gateway.Taken {
					t.Errorf("its neighbour: %+v", got)
				}
				return
			}
			bad.Store(false)
			hosttest.Eventually(t, "it is asked again", func() bool { return s.carryTo(t, "depot-1").State == gateway.Taken })
		})
	}
}

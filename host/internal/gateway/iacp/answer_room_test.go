package iacp_test

import (
	"context"
	"fmt"
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
)

// largeAnswer is the size of an answer of [largeRuntime], in bytes.
const largeAnswer = 1 << 20

// largeRuntime is a runtime that keeps nothing, and answers each question at once, with a long text.
type largeRuntime struct {
	silentRuntime
	waits *atomic.Int64
}

// Wait implements [gateway.Runtime].
func (rt largeRuntime) Wait(context.Context, gateway.Exchange) (gateway.Answer, error) {
	rt.waits.Add(1)
	return rt.answer(), nil
}

// Look implements [gateway.Runtime].
func (rt largeRuntime) Look(context.Context, gateway.Exchange) (gateway.Answer, bool, error) {
	return rt.answer(), true, nil
}

// Find implements [gateway.Runtime].
func (rt largeRuntime) Find(_ context.Context, c gateway.Caller, id string) (gateway.Exchange, error) {
	return gateway.Exchange{Caller: c, ID: id, Agent: "echo", Note: fmt.Appendf(nil, `{"id":%q,"type":"task_request","sender":"depot-1","receiver":"echo"}`, id)}, nil
}

func (largeRuntime) answer() gateway.Answer {
	return gateway.Answer{Outcome: gateway.Done, Body: strings.Repeat("y", largeAnswer), At: time.Now()}
}

// acksOf reads n answers, and shows the acknowledgement of each.
func acksOf(c *iacptest.Conn, n int) <-chan iacptest.Message {
	acks := make(chan iacptest.Message, n)
	go func() {
		defer close(acks)
		for n > 0 {
			got, err := c.Read()
			if err != nil {
				return
			}
			if got.Type == "task_response" {
				acks <- got.Reply("ack", map[string]any{"message_id": got.ID})
				n--
			}
		}
	}()
	return acks
}

// TestUnacknowledgedAnswerMemory (I-006, I-027): large answers that a peer does not acknowledge take the
// room of its realm and no more. All come when it acknowledges them, also such that it asks for by a
// message_status. It is not parallel: it looks at the whole process.
func TestUnacknowledgedAnswerMemory(t *testing.T) {
	const n = 40
	rt := largeRuntime{waits: new(atomic.Int64)}
	s := newSite(t, func(o *iacp.Options) {
		rt.Unrecorded = gatewaytest.Unrecorded{Runtime: o.Runtime}
		o.Runtime, o.MaxBody, o.Held, o.Ack = rt, 2<<20, 3<<20, time.Hour
	})
	c := s.dial(t, "ack")
	exchange(t, c, task("warm"), "ack")
	read(t, c, "task_response")
	before, _ := gatewaytest.Footprint()
	acks := acksOf(c, n)
	for range n - 1 {
		if err := c.Send(task("how many?").Text()); err != nil {
			t.Fatal(err)
		}
	}
	hosttest.Eventually(t, "all questions have answers", func() bool { return rt.waits.Load() == n })
	if err := c.Send(iacptest.New("message_status", "depot-1", "", map[string]any{"message_id": uuid.NewString()}).Text()); err != nil {
		t.Fatal(err)
	}
	var after int64
	hosttest.Eventually(t, "the answers take the room of their realm", func() bool {
		after, _ = gatewaytest.Footprint()
		return after-before < 12*largeAnswer
	})
	t.Logf("%d answers of %d bytes hold %d", n, largeAnswer, after-before)
	for range n {
		if err := c.Send((<-acks).Text()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLargeAnswersCut (I-006, I-057): large answers that wait for room when their connection is cut come
// on the next one, each once, while other connections of the realm go on.
func TestLargeAnswersCut(t *testing.T) {
	t.Parallel()
	const n = 12
	s := newSite(t, func(o *iacp.Options) { o.MaxBody, o.Held, o.Ack = 2<<20, 3<<20, time.Hour })
	s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "large"}, func(context.Context, *gatewaytest.Turn) gateway.Answer {
		return gateway.Answer{Outcome: gateway.Done, Body: strings.Repeat("y", largeAnswer)}
	})
	c, other := s.spoke(t, token, "depot-1"), s.spoke(t, token, "depot-2")
	open := map[string]bool{}
	for range n {
		m := task("how many?")
		m.Recipient.ID = "large"
		open[m.ID] = true
		if err := c.Send(m.Text()); err != nil {
			t.Fatal(err)
		}
	}
	for id := range open {
		hosttest.Eventually(t, "it is answered", func() bool {
			_, err := s.rt.Find(t.Context(), gatewaytest.Realm("acme", "depot"), id)
			return err == nil && s.outcomeOf(t, id) == gateway.Done
		})
	}
	small := task("small")
	small.Sender.ID = "depot-2"
	exchange(t, other, small, "ack")
	read(t, other, "task_response")
	_ = c.Close()
	hosttest.Eventually(t, "all are unsent", func() bool { return s.countUnsent(t) == n })
	c = s.spoke(t, token, "depot-1")
	for range n {
		got := read(t, c, "task_response")
		if !open[got.Parent] {
			t.Errorf("the answer to %s came again, or was not asked for", got.Parent)
		}
		delete(open, got.Parent)
	}
	hosttest.Eventually(t, "none is unsent", func() bool { return s.countUnsent(t) == 0 })
}

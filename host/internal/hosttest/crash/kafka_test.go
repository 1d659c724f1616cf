package crash_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/hosttest"
)

// kafkaBroker is a broker of Kafka.
type kafkaBroker struct{ *hosttest.Kafka }

func (b kafkaBroker) dead(t *testing.T) int {
	list, _ := b.Records(t.Context(), "amp.dlq") // there is no topic before the first
	return len(list)
}

// TestKafka (M-073, M-091, M-096, M-098, V-M34): messages over Kafka, with kcat as the partner's
// client. A host that was killed goes on where its group was.
func TestKafka(t *testing.T) {
	t.Parallel()
	b := kafkaBroker{hosttest.StartKafka(t)}
	h := hosttest.StartProcess(t, strings.Replace(queueSwarm, "BROKER", "[gateways.amp.kafka]\nbrokers = [\""+b.Addr+"\"]\nplain = true", 1))
	tryQueues(t, h, newKafkaPeer(t, b), b)
	checkKafkaRecords(t, b)
}

// newKafkaPeer makes acme's agents read at a broker.
func newKafkaPeer(t *testing.T, b kafkaBroker) *queuePeer {
	t.Helper()
	p := &queuePeer{t: t, publishTo: func(ctx context.Context, kind, agent string, text []byte) error {
		return b.Publish(ctx, "amp."+kind, agent, text)
	}}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.readKafka(ctx, b)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return p
}

// readKafka reads the topics from the begin each time, and takes each record for acme's agents once.
func (p *queuePeer) readKafka(ctx context.Context, b kafkaBroker) {
	const pause = 200 * time.Millisecond
	taken := map[string]bool{}
	for ; ctx.Err() == nil; time.Sleep(pause) {
		for _, kind := range []string{"request", "response", "error", "event"} {
			list, _ := b.Records(ctx, "amp."+kind) // the broker may be away
			for n, line := range list {
				agent, text, _ := strings.Cut(line, " ")
				place := kind + " " + line
				if taken[place] || !strings.HasPrefix(agent, "agent-") {
					continue
				}
				if _, err := p.receive(ctx, []byte(text)); err == nil {
					taken[place] = true
				} else if ctx.Err() == nil {
					p.t.Logf("record %d of %s: %v", n, kind, err)
				}
			}
		}
	}
}

// checkKafkaRecords holds the keys of the host's records against their messages.
func checkKafkaRecords(t *testing.T, b kafkaBroker) {
	list, err := b.Records(t.Context(), "amp.response")
	if err != nil || len(list) == 0 {
		t.Fatalf("%d responses, %v", len(list), err)
	}
	for _, line := range list {
		agent, text, _ := strings.Cut(line, " ")
		if m, err := amptest.Parse([]byte(text)); err != nil || m.Message.Type != "response" || m.Message.Destination.AgentID != agent {
			t.Errorf("under %s: %s, %v", agent, text, err)
		}
	}
}

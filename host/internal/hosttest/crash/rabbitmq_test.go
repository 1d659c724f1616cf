package crash_test

import (
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// rabbitMQ is a broker of RabbitMQ.
type rabbitMQ struct{ *hosttest.RabbitMQ }

func (b rabbitMQ) dead(t *testing.T) int { return b.Waiting(t, "amp.dead") }

// TestRabbitMQ (M-073, M-091, M-095, M-098): messages over a real RabbitMQ.
func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	b := hosttest.StartRabbitMQ(t)
	h := hosttest.StartProcess(t, strings.Replace(queueSwarm, "BROKER", "[gateways.amp.rabbitmq]\nbroker = \"amqp://"+b.Addr+"\"\nusername = \"guest\"\npassword = \"guest\"", 1))
	tryQueues(t, h, newRabbitPeer(t, b), rabbitMQ{b})
}

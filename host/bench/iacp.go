package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"skep/host/internal/gateway/iacp/iacptest"
)

// iacpSwarm is a host whose agent answers over IaCP, too, at an address.
func iacpSwarm(address string) string {
	return strings.Replace(benchSwarm, "[[auth.keys]]", `expose = ["iacp"]
[gateways.iacp]
listen = "`+address+`"
asks = 10_000
[gateways.iacp.rate_limit]
requests = 0
[gateways.iacp.partners.shop]
ids = ["shop-*"]
[[auth.keys]]
id = "shop"
role = "agent"
key = "`+shopKey+`"
[[auth.keys]]`, 1)
}

// overIACP compares a task_request over a kept connection of each client, acknowledged both ways,
// with POST /message at the same host.
func overIACP(b *bench) {
	address := must(unusedAddress(b.ctx))
	host := must(startHost(b.ctx, iacpSwarm(address)))
	defer host.stop()
	for _, clients := range []int{1, 16} {
		rates := must(b.rates(
			requesting(func() httpRequest { return message(host.url, trivialBody) }, clients, trivialAnswer),
			askingIACP(address, clients)))
		target := none()
		if clients == 16 {
			target = atLeast(1)
		}
		b.report.compare(fmt.Sprintf("IaCP task_request, %d clients", clients), rates[1], rate, "POST /message", rates[0], target)
	}
}

// unusedAddress is an address of this machine at which nothing listens.
func unusedAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// askingIACP is a subject that asks the benchmark's agent over n connections.
func askingIACP(address string, n int) subject {
	return subject{"an IaCP task_request", func(span time.Duration) (int, time.Duration, error) {
		askers := make([]iacpAsker, n)
		for i := range askers {
			c, err := iacptest.Dial(address, shopKey, "ack")
			if err != nil {
				return 0, 0, err
			}
			defer func() { _ = c.Close() }()
			askers[i].conn = c
		}
		ops, took, err := parallel(n, span, func(i int) error { return askers[i].ask() })
		for _, a := range askers {
			if err == nil && a.ack != nil {
				err = a.conn.Send(a.ack)
			}
		}
		return ops, took, err
	}}
}

// iacpAsker sends one question after the other.
type iacpAsker struct {
	conn *iacptest.Conn
	// ack is the acknowledgement of the last answer, which goes out with the next question.
	ack []byte
}

// ask sends a question, acknowledges the answer before, and reads the answer.
func (a *iacpAsker) ask() error {
	m := iacptest.New("task_request", "shop-1", "boss", map[string]any{"task_type": "mail.message", "parameters": map[string]any{"subject": "q", "body": "hello"}})
	texts := [][]byte{m.Text()}
	if a.ack != nil {
		texts = [][]byte{a.ack, m.Text()}
	}
	if err := a.conn.Send(texts...); err != nil {
		return err
	}
	for {
		got, err := a.conn.Read()
		switch {
		case err != nil:
			return err
		case got.Type == "ack":
		case got.Type == "task_response" && got.Parent == m.ID && got.Payload["status"] == "completed":
			a.ack = got.Reply("ack", map[string]any{"message_id": got.ID}).Text()
			return nil
		default:
			return fmt.Errorf("it is answered by %s", got.Raw)
		}
	}
}

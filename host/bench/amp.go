package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	amp "skep/host/internal/gateway/amp/message"
)

// millKey is what mill's agents and the host sign with.
const millKey = "what mill and hive sign with"

// ampSwarm is a host whose agent answers over AMP: to shop, and to mill, whose messages are signed and
// which may use a broker.
func ampSwarm(broker string) string {
	return strings.Replace(benchSwarm, "[[auth.keys]]", `expose = ["amp"]
[gateways.amp]
asks = 10_000
`+broker+`
[gateways.amp.rate_limit]
requests = 0
[gateways.amp.partners.shop]
ids = ["shop-*"]
[gateways.amp.partners.mill]
ids = ["mill-*"]
hmac_key = "`+millKey+`"
queues = `+fmt.Sprint(broker != "")+`
[[auth.keys]]
id = "shop"
role = "agent"
key = "`+shopKey+`"
[[auth.keys]]
id = "mill"
role = "agent"
key = "`+millToken+`"
[[auth.keys]]`, 1)
}

// millToken is what mill's agents show over HTTP.
const millToken = "the-token-of-mill-at-hive"

// ampAsker makes requests of a partner's agents, whose parameters the host holds against the schema
// of the capability.
type ampAsker struct {
	partner, token string
	key            []byte // empty: it does not sign
	ids            atomic.Int64
}

// newRequest is a request of the partner's n-th agent.
func (a *ampAsker) newRequest(n int) (id string, text []byte, err error) {
	id = fmt.Sprint(a.partner, "-m", a.ids.Add(1))
	m := amp.Message{
		ID: id, Type: amp.Request, Timestamp: time.Now().UTC().Format(time.RFC3339Nano),
		Source: amp.Source{Agent: fmt.Sprint(a.partner, "-", n)}, Destination: amp.Destination{Agent: "boss@hive"},
		Payload: json.RawMessage(`{"capability":"mail.message","parameters":{"subject":"q","body":"hello"}}`),
	}
	if len(a.key) > 0 {
		err = amp.Sign(&m, a.key)
	}
	if err == nil {
		text, err = amp.Write(amp.AMP, m)
	}
	return id, text, err
}

// overHTTP is a subject that asks by requests.
func (a *ampAsker) overHTTP(url string, clients int) subject {
	return subject{"AMP over HTTP", func(span time.Duration) (int, time.Duration, error) {
		cl := clientOf(clients)
		defer cl.CloseIdleConnections()
		return parallel(clients, span, func(n int) error {
			_, text, err := a.newRequest(n)
			if err != nil {
				return err
			}
			return postTo(url+"/amp/v1/invoke", string(text)).as(a.token).with("Content-Type", "application/json").expect(cl, trivialAnswer)
		})
	}}
}

// overSocket is a subject that asks by a WebSocket of each client.
func (a *ampAsker) overSocket(url string, clients int) subject {
	return subject{"AMP over WebSockets", func(span time.Duration) (int, time.Duration, error) {
		conns := make([]*websocket.Conn, clients)
		for n := range conns {
			conn, _, err := websocket.Dial(context.Background(), strings.Replace(url, "http", "ws", 1)+"/amp/v1/ws", &websocket.DialOptions{
				HTTPHeader: http.Header{"Authorization": {"Bearer " + a.token}},
			})
			if err != nil {
				return 0, 0, err
			}
			defer func() { _ = conn.CloseNow() }()
			conns[n] = conn
		}
		return parallel(clients, span, func(n int) error { return a.askBySocket(conns[n], n) })
	}}
}

func (a *ampAsker) askBySocket(conn *websocket.Conn, n int) error {
	_, text, err := a.newRequest(n)
	if err != nil {
		return err
	}
	if err := conn.Write(context.Background(), websocket.MessageText, text); err != nil {
		return err
	}
	_, answer, err := conn.Read(context.Background())
	if err == nil && !strings.Contains(string(answer), trivialAnswer) {
		err = fmt.Errorf("it is answered by %.1000s", answer)
	}
	return err
}

// overAMP compares a request over HTTP with POST /message, and one over each other binding with HTTP,
// at the same host.
func overAMP(b *bench) {
	host := must(startHost(b.ctx, ampSwarm("")))
	defer host.stop()
	shop := &ampAsker{partner: "shop", token: shopKey}
	for _, clients := range []int{1, 16} {
		rates := must(b.rates(
			requesting(func() httpRequest { return message(host.url, trivialBody) }, clients, trivialAnswer),
			shop.overHTTP(host.url, clients), shop.overSocket(host.url, clients), shop.overGRPC(host.url, clients)))
		target := none()
		if clients == 16 {
			target = atLeast(0.8)
		}
		b.report.compare(fmt.Sprintf("AMP request over HTTP, %d clients", clients), rates[1], rate, "POST /message", rates[0], target)
		b.report.compare(fmt.Sprintf("AMP request over a WebSocket, %d clients", clients), rates[2], rate, "AMP over HTTP", rates[1], target)
		b.report.compare(fmt.Sprintf("AMP request over gRPC, %d clients", clients), rates[3], rate, "AMP over HTTP", rates[1], target)
	}
	for _, open := range []func() (*ampBroker, error){openRabbitMQ, openKafka} {
		at, err := open()
		if errors.Is(err, errNoProgram) {
			b.report.print("  %v\n", err)
			continue
		}
		check(err)
		b.overBroker(at)
	}
}

// overBroker compares signed requests over a broker with the same over HTTP, at the same host.
func (b *bench) overBroker(at *ampBroker) {
	defer at.stop()
	host := must(startHost(b.ctx, ampSwarm(at.table)))
	defer host.stop()
	mill := &ampAsker{partner: "mill", token: millToken, key: []byte(millKey)}
	for _, clients := range []int{1, 16} {
		reader := must(at.open("mill", "mill", clients))
		http, queue := meter{of: host.pid()}, meter{of: host.pid()}
		rates := must(b.rates(http.metered(mill.overHTTP(host.url, clients)), queue.metered(reader.asking(mill, clients)), at.bare(clients)))
		reader.stop()
		target := none()
		if clients == 16 {
			target = atLeast(0.8)
		}
		name := fmt.Sprintf("AMP request over %s, signed, %d clients", at.name, clients)
		b.report.compare(name, rates[1], rate, "the same over HTTP", rates[0], target)
		b.report.compare(name, rates[1], rate, "a question and its answer at the broker, no host", rates[2], none())
		b.report.compare(name, rates[1], rate, "the same over HTTP and that, one after the other", 1/(1/rates[0]+1/rates[2]), none())
		b.report.compare("  computing time of the host, each", queue.each(), seconds, "the same over HTTP", http.each(), none())
	}
}

// meter adds up the computing time of a process while subjects are measured.
type meter struct {
	of   int // the process
	took float64
	ops  int
}

// metered is a subject whose operations are counted.
func (m *meter) metered(s subject) subject {
	return subject{s.name, func(span time.Duration) (int, time.Duration, error) {
		before, err := computed(m.of)
		if err != nil {
			return 0, 0, err
		}
		ops, took, err := s.do(span)
		if err != nil {
			return 0, 0, err
		}
		after, err := computed(m.of)
		m.took, m.ops = m.took+after-before, m.ops+ops
		return ops, took, err
	}}
}

// each is the computing time of one operation, in seconds.
func (m *meter) each() float64 { return m.took / float64(max(1, m.ops)) }

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// shopKey is the key of a partner's agents, which speak ACP.
const shopKey = "the-key-of-shop-at-hive"

// gatewaySwarm is a host whose agent answers over MAIL, MCP, A2A, ACP and the toy protocol.
var gatewaySwarm = strings.Replace(benchSwarm, "[[auth.keys]]", `expose = ["mcp", "a2a", "acp", "toy"]
[gateways.toy.rate_limit]
requests = 0
[gateways.mcp.rate_limit]
requests = 0
[gateways.a2a]
asks = 10_000
[gateways.a2a.rate_limit]
requests = 0
[gateways.acp]
asks = 10_000
[gateways.acp.rate_limit]
requests = 0
[gateways.acp.partners.shop]
ids = ["agent*"]
[[auth.keys]]
id = "shop"
role = "agent"
key = "`+shopKey+`"
[server]
max_connections = 0
max_streams = 0
max_streams_per_principal = 0
[[auth.keys]]`, 1)

// gateways compares a message over MCP, A2A, ACP and the toy protocol with POST /message of
// the same host, and with a2a-go's server, whose tasks are lost with its process.
func gateways(b *bench) {
	host := must(startHost(b.ctx, gatewaySwarm))
	defer host.stop()
	theirs := must(openA2AServer(b.ctx))
	defer theirs.on.stop()
	var ids atomic.Int64
	overA2A := func() httpRequest { return gatewayA2A(host.url, "SendMessage", "hello", &ids) }
	for _, clients := range []int{1, 16} {
		rates := must(b.rates(
			requesting(func() httpRequest { return message(host.url, trivialBody) }, clients, trivialAnswer),
			requesting(func() httpRequest { return toolCall(host.url) }, clients, trivialAnswer),
			requesting(overA2A, clients, "hello"),
			requesting(theirs.post, clients, trivialAnswer),
			requesting(func() httpRequest { return acpRequest(host.url, &ids) }, clients, "hello"),
			requesting(func() httpRequest { return toyAsk(host.url, &ids) }, clients, "hello")))
		toMCP, toA2A, toTheirs, toACP, toToy := none(), none(), none(), none(), none()
		if clients == 16 {
			toMCP, toA2A, toTheirs, toACP, toToy = atLeast(0.8), atLeast(0.7), ahead(), atLeast(0.85), atLeast(0.95)
		}
		b.report.compare(fmt.Sprintf("a line of the toy protocol, %d clients", clients), rates[5], rate, "POST /message", rates[0], toToy)
		b.report.compare(fmt.Sprintf("MCP tools/call, %d clients", clients), rates[1], rate, "POST /message", rates[0], toMCP)
		b.report.compare(fmt.Sprintf("ACP REQUEST, %d clients", clients), rates[4], rate, "POST /message", rates[0], toACP)
		name := fmt.Sprintf("A2A SendMessage, %d clients", clients)
		b.report.compare(name, rates[2], rate, "POST /message", rates[0], toA2A)
		b.report.compare(name, rates[2], rate, "a2a-go, a task in memory only, no sandbox", rates[3], toTheirs)
	}
	b.gatewayStreams(host, &ids)
	b.carried()
}

// toolCall is a call of the benchmark's agent without a session.
func toolCall(url string) httpRequest {
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"boss","arguments":{"message":"hello","subject":"q"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}`
	r := postTo(url+"/mcp", body).as(benchKey).with("Content-Type", "application/json").with("Accept", "application/json, text/event-stream")
	return r.with("Mcp-Protocol-Version", "2026-07-28").with("Mcp-Method", "tools/call").with("Mcp-Name", "boss")
}

// toyAsk is a message for the benchmark's agent over the toy protocol.
func toyAsk(url string, ids *atomic.Int64) httpRequest {
	return postTo(url+"/toy/v1", fmt.Sprintf(`{"id":"m%d","to":"boss","text":"hello"}`, ids.Add(1))).as(benchKey)
}

// gatewayA2A is a request with a new message for the benchmark's agent.
func gatewayA2A(url, method, text string, ids *atomic.Int64) httpRequest {
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": map[string]any{"message": map[string]any{ // texts always encode
		"messageId": fmt.Sprint("m", ids.Add(1)), "role": "ROLE_USER", "parts": []map[string]string{{"text": text}},
	}}})
	return a2aCall(url, string(body))
}

// acpRequest is a REQUEST of a partner's agent to the benchmark's.
func acpRequest(url string, ids *atomic.Int64) httpRequest {
	body := fmt.Sprintf(`{"header":{"version":"1.0","id":"m%d","sender":"agentA","receiver":"boss","type":"REQUEST","timestamp":%q,"content_type":"text/plain"},"body":"hello"}`,
		ids.Add(1), time.Now().UTC().Format(time.RFC3339Nano))
	return postTo(url+"/acp/v1/messages", body).as(shopKey).with("Content-Type", "application/json")
}

func a2aCall(url, body string) httpRequest {
	return postTo(url+"/a2a/hive/boss", body).as(benchKey).with("A2A-Version", "1.0").with("Content-Type", "application/json").with("Accept", "text/event-stream")
}

// gatewayStreams measures how late a streamed answer ends over A2A beside idle streams,
// and over MAIL beside the same.
func (b *bench) gatewayStreams(host *child, ids *atomic.Int64) {
	idle := &opened{}
	defer idle.close()
	check(b.followA2A(host, idle, ids))
	overMail := must(b.active(func(cl *http.Client) ([]float64, error) {
		return answered(cl, message(host.url, `{"body":"hello","stream":true}`))
	}))
	overA2A := must(b.active(func(cl *http.Client) ([]float64, error) {
		return answered(cl, gatewayA2A(host.url, "SendStreamingMessage", "hello", ids))
	}))
	name := fmt.Sprintf("an answer streamed over A2A, %d active beside %d idle", activeStreams, idleStreams)
	b.report.compareTails(name, overA2A, "over MAIL beside the same", overMail, atMost(1.2))
	b.report.fact("  answers", float64(len(overA2A)), count)
}

// followA2A opens the idle streams: subscriptions to tasks whose agent has set a timer.
func (b *bench) followA2A(host *child, idle *opened, ids *atomic.Int64) error {
	cl := clientOf(0)
	defer cl.CloseIdleConnections()
	var asks []httpRequest
	for range quietTasks {
		raw, err := gatewayA2A(host.url, "SendStreamingMessage", `[["timer.set",{"after":"1h","body":"late"}]]`, ids).firstEvent(b.ctx, cl)
		if err != nil {
			return err
		}
		var event struct {
			Result struct {
				Task struct {
					ID string `json:"id"`
				} `json:"task"`
			} `json:"result"`
		}
		if err := json.Unmarshal(raw, &event); err != nil || event.Result.Task.ID == "" {
			return fmt.Errorf("the stream began with %.300q: %w", raw, err)
		}
		asks = append(asks, a2aCall(host.url, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":%q}}`, event.Result.Task.ID)))
	}
	_, err := idle.open(host, asks)
	return err
}

// firstEvent returns the first event of a stream, and leaves the stream.
func (r httpRequest) firstEvent(ctx context.Context, cl *http.Client) ([]byte, error) {
	rsp, err := r.open(ctx, cl)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rsp.Body.Close() }()
	lines := bufio.NewScanner(rsp.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return []byte(data), nil
		}
	}
	return nil, fmt.Errorf("a stream without events: %w", lines.Err())
}

// answered reads a stream to its end and returns how long that took.
func answered(cl *http.Client, request httpRequest) ([]float64, error) {
	began := time.Now()
	if err := request.expect(cl, "hello"); err != nil {
		return nil, err
	}
	return []float64{time.Since(began).Seconds()}, nil
}

// carried measures a task that asks an agent of another host over A2A, and the same over
// MAIL.
func (b *bench) carried() {
	const exposed = "[gateways.a2a]\nasks = 10_000\n[gateways.a2a.rate_limit]\nrequests = 0\n"
	depot := strings.Replace(peerFile("depot", "hive"), "comm_targets = [\"boss\", \"*@*\"]", "comm_targets = [\"boss\", \"*@*\"]\nexpose = [\"a2a\"]", 1)
	const buyer = "[gateways.a2a.partners.buyer]\nagents = [\"math\"]\n[[auth.keys]]\nid = \"buyer\"\nrole = \"agent\"\nkey = \"the-key-of-buyer\"\n"
	other := must(startHost(b.ctx, depot+exposed+buyer))
	defer other.stop()
	one := must(startHost(b.ctx, peerFile("hive", "depot")+exposed+
		fmt.Sprintf("[gateways.a2a.partners.store]\nurl = %q\nallow_private = true\nauth_token = \"the-key-of-buyer\"\n", other.url+"/a2a/depot/math")))
	defer one.stop()
	check(b.known(one, "hive", "depot", other.url))
	check(b.known(other, "depot", "hive", one.url))
	for _, clients := range []int{1, 16} {
		rates := must(b.rates(requesting(asksPeer(one, "math@store"), clients, "echo: x"), requesting(asksPeer(one, "math@depot"), clients, "echo: x")))
		target := none()
		if clients == 16 {
			target = atLeast(0.9)
		}
		b.report.compare(fmt.Sprintf("a task that asks a partner over A2A, %d clients", clients), rates[0], rate, "a peer over MAIL, the same host", rates[1], target)
	}
}

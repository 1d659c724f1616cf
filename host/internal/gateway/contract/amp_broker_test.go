package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/contract"
)

// ampBrokerProtocol is AMP over a broker in both directions. A message that is looked at is looked at over
// HTTP. open opens a place at the broker for one host and its partners.
func ampBrokerProtocol(open func(t testing.TB) (table string, mesh *ampMesh), without map[string]string) contract.Protocol {
	p := ampProtocol()
	p.Broker, p.Agent = true, ampAgentOf
	p.EachPartner = fmt.Sprintf("queues = true\nhmac_key = %q\n", ampKeyOf("PARTNER"))
	p.Without = maps.Clone(p.Without)
	maps.Copy(p.Without, map[string]string{
		"27/stray": "an answer waits a minute for its question, as after a start of the host: TestRabbitMQ, TestKafka",
		"28/size":  "a broker takes no message of that size: TestSetAside, TestBodiesAreBounded",
	})
	maps.Copy(p.Without, without)
	p.Place = func(t testing.TB) contract.Protocol {
		own := p
		table, mesh := open(t)
		own.Table = table
		own.Sign = func(body []byte) []byte { return signAMP(body, ampKeyOf("depot")) }
		own.Serve = func(_ testing.TB, address string, handle contract.Handler) (string, func()) {
			agents := []string{"dead"}
			if address == "127.0.0.1:0" {
				agents = []string{"depot-1", "depot-2", "mirror", "late"}
			}
			return "", mesh.serve(handle, agents)
		}
		own.Dial = func(t testing.TB, url, token string) contract.Client {
			mesh.awaitHost(t)
			return ampQueueClient{ampClient{amptest.Client{URL: url + "/amp/v1/invoke", Token: token}}, mesh}
		}
		return own
	}
	return p
}

// ampAgentOf is the agent of a partner that ours write to: an id is one agent's in the whole mesh.
func ampAgentOf(partner string) string {
	if partner == "depot" {
		return "depot-2"
	}
	return partner
}

// ampPartnerOf is the partner of an agent.
func ampPartnerOf(agent string) string {
	partner, _, _ := strings.Cut(agent, "-")
	return partner
}

// ampKeyOf is the key that a partner signs with.
func ampKeyOf(partner string) string { return "the-key-of-" + partner + "-and-the-hive" }

// ampQueueClient is a realm's agent at a broker.
type ampQueueClient struct {
	ampClient
	mesh *ampMesh
}

// Encode implements [contract.Client]. At a broker agents of the host have the names of the mesh.
func (c ampQueueClient) Encode(m contract.Message) []byte {
	var text struct {
		Protocol string         `json:"protocol"`
		Message  amptest.Object `json:"message"`
	}
	if err := json.Unmarshal(c.ampClient.Encode(m), &text); err != nil {
		panic(err)
	}
	text.Message["timestamp"] = c.mesh.began // a repeat has the same
	text.Message["destination"].(amptest.Object)["agent_id"] = m.To + "@hive"
	body, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return signAMP(body, ampKeyOf(ampPartnerOf(senderOf(c.Token))))
}

// Send implements [contract.Client]. What is told has no answer if it was taken.
func (c ampQueueClient) Send(ctx context.Context, m contract.Message) (contract.State, error) {
	kind := map[contract.Kind]string{contract.Ask: "request", contract.Tell: "event", contract.Answer: "response"}[m.Kind]
	q := c.mesh.ask(kind, m.To+"@hive", m.ID)
	if kind == "request" {
		return q.exchange(ctx, c.Encode(m))
	}
	defer q.end()
	if err := q.publish(ctx, c.Encode(m)); err != nil {
		return contract.State{}, err
	}
	if err := c.mesh.at.settle(ctx, c); err != nil {
		return contract.State{}, err
	}
	select {
	case got := <-q.got:
		return got.state()
	default:
		return contract.State{Status: contract.Working}, nil
	}
}

// Post implements [contract.Client].
func (c ampQueueClient) Post(ctx context.Context, body []byte) (contract.State, error) {
	var m struct {
		Message struct {
			ID any `json:"id"`
		} `json:"message"`
	}
	_ = json.Unmarshal(body, &m) // it may be no message
	id, _ := m.Message.ID.(string)
	return c.mesh.ask("request", "boss@hive", id).exchange(ctx, body)
}

// ampHeard is what comes about a message: an answer, or that it was set aside.
type ampHeard struct {
	text    []byte
	isAside bool
}

func (h ampHeard) state() (contract.State, error) {
	if h.isAside {
		return contract.State{}, &contract.Refused{Reason: contract.Unsaid}
	}
	got, err := ampState(ampReplyOf(h.text), nil)
	got.Raw = withoutProof(h.text)
	return got, err
}

// ampQuestion is a message that waits for what comes about it.
type ampQuestion struct {
	mesh                  *ampMesh
	kind, agent, id, mark string
	got                   chan ampHeard
}

// errNoRoute means that the broker has no queue for a message, errNoKey that it has no key for it.
var (
	errNoRoute = errors.New("no queue")
	errNoKey   = errors.New("the id makes no key of the broker")
)

// publish sends the text.
func (q *ampQuestion) publish(ctx context.Context, text []byte) error {
	err := q.mesh.at.publish(ctx, ampRecord{kind: q.kind, agent: q.agent, mark: q.mark, text: text})
	switch {
	case errors.Is(err, errNoRoute):
		return &contract.Refused{Reason: contract.Unknown, Text: "the broker has no queue for it"}
	case errors.Is(err, errNoKey):
		return &contract.Refused{Reason: contract.Invalid, Text: err.Error()}
	}
	return err
}

// exchange sends a text and waits for what comes about it.
func (q *ampQuestion) exchange(ctx context.Context, text []byte) (contract.State, error) {
	defer q.end()
	if err := q.publish(ctx, text); err != nil {
		return contract.State{}, err
	}
	select {
	case got := <-q.got:
		return got.state()
	case <-ctx.Done():
		return contract.State{}, context.Cause(ctx)
	}
}

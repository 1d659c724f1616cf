package amp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/swarm"
)

// waiting are our questions whose answers may come by messages of their own. One that comes
// while its question is not under way is refused: the question is sent again.
type waiting struct {
	mu       sync.Mutex
	question map[workKey]*question
	// relayed counts the questions of a realm's agents to each other.
	relayed map[realmKey]int
}

type question struct {
	of      *swarm.Delivery
	arrived chan struct{}
	// to are the ids of the agents that one agent of a realm asks, several where a repeat names none;
	// none for a question of ours. asking counts the question and its repeats, which have one answer:
	// answer, once arrived is closed.
	to     []string
	asking int
	answer message.Received
}

func newWaiting() *waiting {
	return &waiting{question: map[workKey]*question{}, relayed: map[realmKey]int{}}
}

// begin waits for the answer to a message. end forgets it. The router makes one attempt at
// a time.
func (w *waiting) begin(c gateway.Caller, id string, of *swarm.Delivery) (arrived <-chan struct{}, end func()) {
	key, q := workKey{c.Principal.Tenant, c.Realm, id}, &question{of: of, arrived: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.question[key] = q
	return q.arrived, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.question[key] == q {
			delete(w.question, key)
		}
	}
}

// beginRelay waits for the answer of a registered agent to a message, a repeat for the one to its
// first. end forgets it.
func (w *waiting) beginRelay(c gateway.Caller, id, to string) (q *question, end func(), err error) {
	key, realm := workKey{c.Principal.Tenant, c.Realm, id}, realmKeyOf(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.relayed[realm] >= maxRelayed {
		f := message.Faultf(message.RateLimitExceeded, "", "%d requests of agents of %s to each other wait for their answers", maxRelayed, c.Realm)
		f.RetryAfter = retryAfter
		return nil, nil, f
	}
	if q = w.question[key]; q == nil {
		q = &question{arrived: make(chan struct{})}
		w.question[key] = q
	}
	q.to = append(q.to, to)
	q.asking++
	w.relayed[realm]++
	return q, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if q.asking--; q.asking == 0 && w.question[key] == q {
			delete(w.question, key)
		}
		if w.relayed[realm]--; w.relayed[realm] == 0 {
			delete(w.relayed, realm)
		}
	}, nil
}

// pass hands the answer of a registered agent to who has asked it. What comes before the last answer
// is passed over.
func (w *waiting) pass(c gateway.Caller, in message.Received, q *question) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(q.to, in.Source.Agent) {
		return message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "the request is for %.100q, and source.agent_id of its answer is %.100q", q.to[0], in.Source.Agent)
	}
	if isInterim(in) {
		return nil
	}
	if key := (workKey{c.Principal.Tenant, c.Realm, in.Headers.Correlation}); w.question[key] == q { // it has no answer yet
		q.answer = in
		close(q.arrived)
		delete(w.question, key)
	}
	return nil
}

func (w *waiting) find(c gateway.Caller, id string) *question {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.question[workKey{c.Principal.Tenant, c.Realm, id}]
}

// finish ends the wait for an answer that was delivered.
func (w *waiting) finish(c gateway.Caller, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := workKey{c.Principal.Tenant, c.Realm, id}
	if q := w.question[key]; q != nil {
		close(q.arrived)
		delete(w.question, key)
	}
}

// answered takes an answer to a question of ours that comes by a message of its own. One to
// nothing that waits changes nothing (G-024).
func (g *Gateway) answered(ctx context.Context, c gateway.Caller, in message.Received) (reply, error) {
	id := in.Headers.Correlation
	q := g.waiting.find(c, id)
	if id == "" || q == nil {
		return reply{}, message.Faultf(message.AgentNotFound, message.ReasonMessage, "headers.correlation_id names no message that waits for an answer")
	}
	if q.of == nil {
		return reply{}, g.waiting.pass(c, in, q)
	}
	if isInterim(in) {
		return reply{}, g.showProgress(ctx, c, in, *q.of)
	}
	x, err := g.answer(ctx, c, in, q.of, id, true)
	if err == nil {
		g.waiting.finish(c, id)
	}
	return reply{exchange: x}, err
}

// showProgress shows what an answer that is not the last one has to those who read the task of our
// question (D-M7). It is no mail.
func (g *Gateway) showProgress(ctx context.Context, c gateway.Caller, in message.Received, of swarm.Delivery) error {
	if err := g.Runtime.CheckRate(c); err != nil {
		return err
	}
	text := progressOf(in)
	if text == "" {
		return nil
	}
	err := g.Runtime.Show(ctx, of, gateway.Piece{Kind: gateway.Progress, Text: text})
	if errors.Is(err, gateway.ErrUnknown) {
		err = nil // our task does not wait any more
	}
	return err
}

// progressOf is the text of an answer that is not the last one: its result, or else what its
// metadata say. It is empty for one that says only that the question was taken.
func progressOf(in message.Received) string {
	var p struct {
		Result   json.RawMessage            `json:"result"`
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if json.Unmarshal(in.Payload, &p) != nil {
		return ""
	}
	if text := gateway.ExtensionText(p.Metadata["message"]); text != "" {
		return gateway.Excerpt(text)
	}
	switch text := textOf(p.Result); text {
	case "", "{}", "[]", "null":
		return ""
	default:
		return gateway.Excerpt(text)
	}
}

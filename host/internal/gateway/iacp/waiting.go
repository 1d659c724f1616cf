package iacp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
	"skep/host/internal/swarm"
)

// waiting are our messages that wait for acknowledgements and answers.
type waiting struct {
	mu   sync.Mutex
	byID map[waitKey]*sent
}

type waitKey struct {
	realm realmKey
	id    string
}

func newWaiting() *waiting { return &waiting{byID: map[waitKey]*sent{}} }

// sent is one message of ours.
type sent struct {
	d *swarm.Delivery
	// from is the agent whose answer counts, empty for each of the partner.
	from            string
	acked, answered chan struct{}
	mu              sync.Mutex
	err             error
	// fault is of the last answer that was not taken, nil for none.
	fault error
}

// begin waits for what comes about a message, and for the answer of an agent; end forgets it. The
// router makes one attempt at a time.
func (w *waiting) begin(c gateway.Caller, id, from string, d *swarm.Delivery) (s *sent, end func()) {
	key := waitKey{realmOf(c), id}
	s = &sent{d: d, from: from, acked: make(chan struct{}), answered: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID[key] = s
	return s, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.byID[key] == s {
			delete(w.byID, key)
		}
	}
}

func (w *waiting) find(c gateway.Caller, id string) *sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byID[waitKey{realmOf(c), id}]
}

// acknowledge notes that a message was acknowledged.
func (w *waiting) acknowledge(c gateway.Caller, id string) {
	if s := w.find(c, id); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !isClosed(s.acked) {
			close(s.acked)
		}
	}
}

// finish ends the wait for an answer: with nil it was delivered.
func (s *sent) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isClosed(s.answered) {
		s.err = err
		close(s.answered)
	}
}

// checkSender refuses the response of an agent that was not asked. An error may be the partner's: a
// hub that does not find the agent answers in its place.
func (s *sent) checkSender(m message.Message) error {
	if s.from == "" || m.Sender.ID == s.from || m.Type == message.ErrorResponse {
		return nil
	}
	text := fmt.Sprintf("the message that parent_message_id names was sent to %q, and this %s is of %q: it does not count", s.from, m.Type, m.Sender.ID)
	return &fault{code: codeInvalid, text: text, expected: "sender.agent_id " + s.from}
}

func (s *sent) isAnswered() bool { return isClosed(s.answered) }

// outcome is why there is no answer, nil for one that was delivered or is not wanted.
func (s *sent) outcome() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// refuse notes why an answer was not taken. The agent that was asked may send another.
func (s *sent) refuse(fault error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// refused is why the last answer was not taken, nil where none came.
func (s *sent) refused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// result is the payload of a task_response, a tool_response and an error_response.
type result struct {
	Status   string          `json:"status"`
	Result   json.RawMessage `json:"result"`
	Output   json.RawMessage `json:"output"`
	Progress *float64        `json:"progress"`
	Error    json.RawMessage `json:"error"` // a text or an object (D-I3)

	Code  string `json:"error_code"`
	Text  string `json:"error_message"`
	Retry bool   `json:"retry_allowed"`
}

// answered takes an answer to a message of ours. One to nothing that waits is kept for a while:
// its question is sent again, or was answered before.
func (c *conn) answered(caller gateway.Caller, m message.Message, text []byte) {
	if agent := c.refusedEnrolment(m.Parent); agent != "" && m.Type == message.ErrorResponse {
		c.g.Log.Warn("iacp: a partner does not register an agent", "partner", caller.Realm, "agent", agent, "answer", string(m.Payload[:min(len(m.Payload), 1000)]))
		return
	}
	if m.Type == message.ErrorResponse {
		c.noteAck(m.Parent, m.Sender.ID) // what is refused is not sent again
	}
	err := c.g.checkSender(caller, m.Sender.ID)
	if err == nil {
		err = c.g.checkSignature(caller, m, text)
	}
	s := c.g.waiting.find(caller, m.Parent)
	if to, isMember := c.g.relays.member(caller, m.To()); err == nil && s == nil && isMember {
		err = c.g.relays.keepAnswer(c.ctx, caller, to, m, text)
		c.g.record(caller, m, text, gateway.Exchange{}, err)
		if err == nil {
			c.acknowledge(m)
		} else {
			c.refuse(m, err)
		}
		return
	}
	if err == nil && s == nil && c.g.early.keep(c, caller, m, text) {
		if c.g.waiting.find(caller, m.Parent) != nil { // since then
			c.g.early.bring(caller, m.Parent)
		}
		return
	}
	switch {
	case err != nil:
	case s == nil:
		err = errNoQuestion
	default:
		err = s.checkSender(m)
	}
	if err == nil {
		err = c.g.bring(c.ctx, caller, m, text, s)
	}
	c.g.record(caller, m, text, gateway.Exchange{}, err)
	if err == nil || errors.Is(err, gateway.ErrUnknown) {
		c.acknowledge(m)
		return
	}
	if s != nil && isRefusal(err) && !errors.Is(err, gateway.ErrElsewhere) {
		s.refuse(err)
	}
	c.refuse(m, err)
}

// noteRefusedAnswer notes that an answer to a message of ours is no message.
func (c *conn) noteRefusedAnswer(m message.Message, fault error) {
	if s := c.g.waiting.find(c.caller, m.Parent); s != nil && m.Type.Class() == message.Answers {
		s.refuse(fault)
	}
}

// bring brings an answer to the agent that asked, once.
func (g *Gateway) bring(ctx context.Context, c gateway.Caller, m message.Message, text []byte, s *sent) error {
	var r result
	if err := json.Unmarshal(m.Payload, &r); err != nil {
		return &message.Fault{Code: message.InvalidFormat, Text: "the payload cannot be read", Member: "payload", Expected: "a response"}
	}
	switch {
	case m.Type == message.ErrorResponse && r.Retry: // the router sends it again
		s.finish(fmt.Errorf("[%s] %s: %w", r.Code, r.Text, gateway.ErrBusy))
		return nil
	case r.Status == "accepted":
		return nil
	case r.Status == "in_progress":
		return g.Runtime.Show(ctx, *s.d, gateway.Piece{Kind: gateway.Progress, Text: textOf(r.Result), Fraction: r.Progress})
	}
	code, body := r.content(m.Type)
	a := gateway.Ask{
		Kind: gateway.Answers, ID: "answer-" + m.Parent, Swarm: s.d.Wrapper.SourceSwarm, Of: s.d, Body: body, Raw: text, Info: infoOf(m),
		Digest: sha256.Sum256(m.Payload),
	}
	if code != "" {
		a.Subject, a.Info["error"] = "["+code+"]", code
	}
	if len(a.Body) > gateway.MaxText {
		a.Parts, a.Body = []gateway.Part{{Name: "result", Type: "application/json", Data: []byte(a.Body)}}, ""
	}
	_, err := g.Runtime.Ask(ctx, c, a)
	if errors.Is(err, gateway.ErrConflict) || errors.Is(err, gateway.ErrUnknown) {
		err = nil // an attempt before has brought it, or our task does not wait any more
	}
	if err == nil {
		s.finish(nil)
		if now := g.waiting.find(c, m.Parent); now != nil {
			now.finish(nil) // the connection ended meanwhile, and another attempt waits
		}
	}
	return err
}

// content is what our agent gets of a response: its text, and the code of one that is no
// success.
func (r result) content(t message.Type) (code, body string) {
	var named failure
	if json.Unmarshal(r.Error, &named) != nil {
		named.Message = textOf(r.Error)
	}
	switch {
	case t == message.ErrorResponse:
		return codeOf(r.Code), r.Text
	case r.Status == "completed":
		return "", textOf(r.Result)
	case r.Status == "success":
		return "", textOf(r.Output)
	case named.Message == "" && len(r.Result) > 0:
		named.Message = textOf(r.Result)
	}
	if named.Code == "" {
		named.Code = r.Status
	}
	return codeOf(named.Code), named.Message
}

// codeOf is a code as subjects have it.
func codeOf(code string) string {
	if code == "" || len(code) > 40 || strings.ContainsAny(code, " []\n") {
		return "ERROR"
	}
	return strings.ToUpper(code)
}

// textOf is a value of JSON as a text: a string without its quotes.
func textOf(raw json.RawMessage) (text string) {
	if json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	return text
}

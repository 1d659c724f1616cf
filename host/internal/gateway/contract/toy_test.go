package contract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/contract"
	"skep/host/internal/gateway/gatewaytest/toy"
)

// TestToy (G-001, G-003, G-024, G-025, G-026, G-031, G-040, G-041, G-042, G-051, G-052, G-053, G-054, G-056, G-057): the
// contract of gateways, held by the toy protocol with a peer in a process of its own.
func TestToy(t *testing.T) {
	t.Parallel()
	contract.Run(t, toyProtocol())
}

func toyProtocol() contract.Protocol {
	return contract.Protocol{
		Name: toy.Name, Realms: true, Users: true,
		Gateway: func(rt gateway.Runtime, g config.Gateway) (gateway.Gateway, error) {
			return toy.New(rt, toy.Options{Hold: g.Hold, MaxBody: int64(g.MaxBody), MaxDepth: g.MaxDepth}), nil
		},
		Dial: func(t testing.TB, url, token string) contract.Client {
			return &toyClient{peer: startPeer(t), url: url + toyPath, token: token}
		},
		Serve: serveToy,
		Without: map[string]string{
			"31/id": "an id is a segment of a path, and the toy has no other form for one with a slash",
		},
	}
}

const toyPath = "/toy/v1"

// toyLine is a message, a state, a piece or a refusal of the protocol: all of their members
// are in the description of package toy.
type toyLine struct {
	ID        string         `json:"id,omitempty"`
	Kind      string         `json:"kind,omitempty"`
	From      string         `json:"from,omitempty"`
	To        string         `json:"to,omitempty"`
	Thread    string         `json:"thread,omitempty"`
	Re        string         `json:"re,omitempty"`
	Subject   string         `json:"subject,omitempty"`
	Text      string         `json:"text,omitempty"`
	Parts     []toyPart      `json:"parts,omitempty"`
	By        *time.Time     `json:"by,omitempty"`
	Hops      int            `json:"hops,omitempty"`
	Push      bool           `json:"push,omitempty"`
	X         map[string]any `json:"x,omitempty"`
	State     string         `json:"state,omitempty"`
	Questions []toyQuestion  `json:"questions,omitempty"`
	N         *int64         `json:"n,omitempty"`
	Chunk     *string        `json:"chunk,omitempty"`
	Progress  *string        `json:"progress,omitempty"`
	Error     string         `json:"error,omitempty"`
}

type toyPart struct {
	Name string `json:"name,omitempty"`
	Type string `json:"type,omitempty"`
	Data []byte `json:"data"`
}

type toyQuestion struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Person bool   `json:"person,omitempty"`
}

func (l toyLine) encode() []byte {
	raw, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	return raw
}

// state is a line that has a state.
func (l toyLine) state(raw []byte) contract.State {
	status := contract.Status(l.State)
	if status == "timed_out" {
		status = contract.Cancelled
	}
	s := contract.State{Status: status, Thread: l.Thread, Subject: l.Subject, Text: l.Text, Extra: l.X, Raw: string(raw)}
	for _, p := range l.Parts {
		s.Parts = append(s.Parts, contract.Part(p))
	}
	for _, q := range l.Questions {
		s.Questions = append(s.Questions, contract.Question(q))
	}
	return s
}

// toyReasons are the protocol's refusals.
var toyReasons = map[string]contract.Reason{
	"unknown": contract.Unknown, "conflict": contract.Conflict, "denied": contract.Denied, "invalid": contract.Invalid,
	"large": contract.Large, "busy": contract.Busy, "stopping": contract.Stopping, "internal": contract.Internal,
}

// toyClient calls a host through the peer.
type toyClient struct {
	peer       *peerProcess
	url, token string
}

// call makes a request and hands each line to a function.
func (c *toyClient) call(ctx context.Context, method, rest string, body []byte, each func(toyLine, []byte)) error {
	status, err := c.peer.call(ctx, method, c.url+rest, c.token, body, func(status int, raw []byte) error {
		if len(raw) == 0 && status == http.StatusOK {
			each(toyLine{}, nil)
		}
		if len(raw) == 0 {
			return nil
		}
		var l toyLine
		if err := json.Unmarshal(raw, &l); err != nil {
			l = toyLine{Text: string(raw)} // of the listener
		}
		if l.Error != "" {
			return &contract.Refused{Reason: toyReasons[l.Error], Text: l.Text}
		}
		each(l, raw)
		return nil
	})
	var refused *contract.Refused
	switch {
	case errors.As(err, &refused) && refused.Reason == "":
		return fmt.Errorf("a refusal that the protocol does not have: %w", err)
	case err != nil:
		return err
	case status == http.StatusUnauthorized:
		return &contract.Refused{Reason: contract.NoCredential}
	case status == http.StatusRequestEntityTooLarge:
		return &contract.Refused{Reason: contract.Large}
	case status == http.StatusServiceUnavailable:
		return &contract.Refused{Reason: contract.Stopping}
	case status != http.StatusOK:
		if status == http.StatusTooManyRequests {
			return &contract.Refused{Reason: contract.Busy, Text: "by the host"}
		}
		return fmt.Errorf("%s %s answers with %d", method, rest, status)
	}
	return nil
}

// one makes a request whose response is a state.
func (c *toyClient) one(ctx context.Context, method, rest string, body []byte) (s contract.State, err error) {
	err = c.call(ctx, method, rest, body, func(l toyLine, raw []byte) {
		if raw != nil {
			s = l.state(raw)
		}
	})
	return s, err
}

// Encode implements [contract.Client].
func (c *toyClient) Encode(m contract.Message) []byte {
	l := toyLine{ID: m.ID, Kind: string(m.Kind), From: m.From, To: m.To, Thread: m.Thread, Subject: m.Subject, Text: m.Text, Hops: m.Hops, Push: m.Push, X: m.Extra}
	if m.Kind == contract.Answer {
		if l.Re = m.Question.ID; m.Question.Person {
			l.Kind = "result"
		}
	}
	if !m.By.IsZero() {
		l.By = &m.By
	}
	for _, p := range m.Parts {
		l.Parts = append(l.Parts, toyPart(p))
	}
	return l.encode()
}

// Post implements [contract.Client].
func (c *toyClient) Post(ctx context.Context, body []byte) (contract.State, error) {
	return c.one(ctx, http.MethodPost, "", body)
}

// Send implements [contract.Client].
func (c *toyClient) Send(ctx context.Context, m contract.Message) (contract.State, error) {
	return c.Post(ctx, c.Encode(m))
}

// Look implements [contract.Client].
func (c *toyClient) Look(ctx context.Context, m contract.Message) (contract.State, error) {
	return c.one(ctx, http.MethodGet, "/"+url.PathEscape(m.ID), nil)
}

// Cancel implements [contract.Client].
func (c *toyClient) Cancel(ctx context.Context, m contract.Message) error {
	_, err := c.one(ctx, http.MethodDelete, "/"+url.PathEscape(m.ID), nil)
	return err
}

// Read implements [contract.Client].
func (c *toyClient) Read(ctx context.Context, m contract.Message, from int64, each func(contract.Piece)) (last contract.State, err error) {
	err = c.call(ctx, http.MethodGet, fmt.Sprintf("/%s/lines?from=%d", url.PathEscape(m.ID), from), nil, func(l toyLine, raw []byte) {
		switch {
		case raw == nil:
			each(contract.Piece{})
		case l.Chunk != nil:
			each(contract.Piece{N: *l.N, Chunk: *l.Chunk})
		case l.Progress != nil:
			each(contract.Piece{Progress: *l.Progress})
		default:
			last = l.state(raw)
		}
	})
	if err == nil && last.Status == "" {
		err = errors.New("the stream ended without a state")
	}
	return last, err
}

// serveToy runs a foreign agent in the peer.
func serveToy(t testing.TB, address string, handle contract.Handler) (string, func()) {
	t.Helper()
	p := startPeer(t)
	f := &toyForeign{peer: p, handle: handle, working: map[string]context.CancelFunc{}}
	p.onMessage(f.take, f.withdraw)
	bound := p.serve(t, address)
	return "http://" + bound, p.stop
}

// stateLine is a state as the foreign agent sends it.
func stateLine(id string, s contract.State) []byte {
	l := toyLine{ID: id, State: string(s.Status), Subject: s.Subject, Text: s.Text, Thread: s.Thread, X: s.Extra}
	for _, p := range s.Parts {
		l.Parts = append(l.Parts, toyPart(p))
	}
	for _, q := range s.Questions {
		l.Questions = append(l.Questions, toyQuestion(q))
	}
	return bytes.TrimSpace(l.encode())
}

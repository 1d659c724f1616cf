package toy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// note is what answering a message needs.
type note struct {
	X map[string]any `json:"x,omitempty"`
	// Question is the id of a foreign question, Request our request about which it asks,
	// and Thread its conversation.
	Question string `json:"question,omitempty"`
	Request  string `json:"request,omitempty"`
	Thread   string `json:"thread,omitempty"`
}

func (m message) note() []byte {
	if m.X == nil {
		return nil
	}
	return encode(note{X: m.X})
}

func readNote(raw []byte) (n note) {
	_ = json.Unmarshal(raw, &n) // a message without a note has none
	return n
}

// progress is the record of a message under way: whether its stream is read, and how many
// pieces were.
type progress struct {
	Message string `json:"message"`
	Stream  bool   `json:"stream,omitempty"`
}

// attempt carries a message once.
type attempt struct {
	g      *Gateway
	p      gateway.Partner
	d      swarm.Delivery
	caller gateway.Caller

	record  progress
	version int64
}

// Carry is gateway.Carrier's.
func (g *Gateway) Carry(ctx context.Context, p gateway.Partner, d swarm.Delivery) gateway.Carried {
	if d.Ending || d.Answers != "" && d.Wrapper.Type == mail.Request { // the exchange shows the question
		return gateway.Carried{State: gateway.Taken}
	}
	if p.URL == "" {
		return gateway.Carried{State: gateway.Refused, Reason: p.Name + " has no url"}
	}
	e := &attempt{g: g, p: p, d: d, caller: p.Caller()}
	err := e.run(ctx)
	event := gateway.Event{Caller: e.caller, Foreign: d.Wrapper.MessageID, Type: string(d.Wrapper.Type), Out: true}
	g.rt.Record(event.WithOutcome(false, err))
	return gateway.CarriedAfter(err)
}

func (e *attempt) run(ctx context.Context) error {
	w := e.d.Wrapper
	m := message{
		ID: w.MessageID, From: nameOf(w.Payload.Sender), To: nameOf(w.Payload.Recipient()), Thread: w.Payload.TaskID,
		Subject: w.Payload.Subject, Text: w.Payload.Body, Hops: e.d.Hops, Trace: e.d.Trace,
	}
	switch w.Type {
	case mail.Request, mail.Interrupt:
		if w.Type == mail.Interrupt {
			m.Kind = "interrupt"
		}
		if e.cancels() {
			return e.cancel(ctx)
		}
		return e.converse(ctx, m, w.Payload.ID)
	case mail.Response:
		x, err := e.g.rt.Asked(ctx, e.caller, e.d)
		if errors.Is(err, gateway.ErrUnknown) {
			return gateway.Refuse("its agent has asked nothing")
		}
		if err != nil {
			return err
		}
		m.Kind, m.Re = "answer", x.ID
		n := readNote(x.Note)
		if n.Question == "" {
			_, err := e.post(ctx, m)
			return err
		}
		m.Re, m.Thread = n.Question, n.Thread
		return e.converse(ctx, m, n.Request)
	}
	m.Kind = "tell"
	_, err := e.post(ctx, m)
	return err
}

func nameOf(a mail.Address) string {
	name, _, _ := strings.Cut(a.Name, "@")
	return name
}

// converse sends a message, waits for what comes of it, and hands that to the runtime as
// the answer to a request. An attempt whose stream is recorded goes on with it.
func (e *attempt) converse(ctx context.Context, m message, request string) error {
	if err := e.load(ctx); err != nil {
		return err
	}
	s := status{ID: m.ID, State: working}
	if e.record.Message != m.ID || !e.record.Stream {
		var err error
		if err = e.store(ctx, progress{Message: m.ID}); err != nil {
			return err
		}
		if s, err = e.post(ctx, m); err != nil {
			return err
		}
	}
	if s.State == working {
		if err := e.store(ctx, progress{Message: m.ID, Stream: true}); err != nil {
			return err
		}
		var err error
		if s, err = e.follow(ctx, m.ID); err != nil {
			return err
		}
	}
	return e.deliver(ctx, m, s, request)
}

// cancels reports whether the message calls off the one under way.
func (e *attempt) cancels() bool {
	w := e.d.Wrapper
	return w.Type == mail.Interrupt && strings.HasPrefix(strings.ToLower(w.Payload.Subject), "cancel")
}

// cancel withdraws the message under way.
func (e *attempt) cancel(ctx context.Context) error {
	if err := e.load(ctx); err != nil || e.record.Message == "" {
		return err
	}
	rsp, err := e.call(ctx, http.MethodDelete, "/"+url.PathEscape(e.record.Message), nil)
	if err != nil {
		return err
	}
	return rsp.Body.Close()
}

// call makes a request and returns the response of a success.
func (e *attempt) call(ctx context.Context, method, rest string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, e.p.URL+path+rest, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	rsp, err := e.p.Client.Do(r)
	if err != nil || rsp.StatusCode == http.StatusOK {
		return rsp, err
	}
	defer rsp.Body.Close()
	var said struct{ Error, Text string }
	_ = json.NewDecoder(rsp.Body).Decode(&said) // the status is enough
	if code := rsp.StatusCode; code == http.StatusTooManyRequests || code >= http.StatusInternalServerError {
		return nil, &gateway.StatusError{Code: code}
	}
	return nil, gateway.Refuse("%s", strings.TrimSpace("["+said.Error+"] "+said.Text))
}

// post sends a message and reads its state.
func (e *attempt) post(ctx context.Context, m message) (s status, err error) {
	rsp, err := e.call(ctx, http.MethodPost, "", encode(m))
	if err != nil {
		return s, err
	}
	defer rsp.Body.Close()
	return s, json.NewDecoder(rsp.Body).Decode(&s)
}

// follow reads the stream of a message and shows its pieces.
func (e *attempt) follow(ctx context.Context, id string) (s status, err error) {
	rsp, err := e.call(ctx, http.MethodGet, "/"+url.PathEscape(id)+"/lines", nil)
	if err != nil {
		return s, err
	}
	defer rsp.Body.Close()
	for lines := bufio.NewReader(rsp.Body); ; {
		raw, err := lines.ReadBytes('\n')
		if err != nil {
			return s, fmt.Errorf("its stream ended early: %w", err)
		}
		var p piece
		switch err := errors.Join(json.Unmarshal(raw, &p), json.Unmarshal(raw, &s)); {
		case err != nil:
			return s, err
		case p.Chunk != nil && p.N != nil:
			_ = e.g.rt.Show(ctx, e.d, gateway.Piece{Kind: gateway.Chunk, N: *p.N, Text: *p.Chunk})
		case p.Progress != nil:
			_ = e.g.rt.Show(ctx, e.d, gateway.Piece{Kind: gateway.Progress, Text: *p.Progress, Fraction: p.Fraction})
		case s.State == "":
			return s, errors.New("its stream ended with a refusal")
		default:
			return s, nil
		}
	}
}

// deliver hands what came of our message to the runtime, and forgets the message.
func (e *attempt) deliver(ctx context.Context, m message, s status, request string) error {
	a := gateway.Ask{
		Kind: gateway.Answers, ID: "answer-" + m.ID, From: s.From, Answers: request, Of: &e.d, Subject: s.Subject, Body: s.Text,
		Trace: e.d.Trace, Hops: e.d.Hops, Info: map[string]any{"protocol": Name, "state": s.State, "x": s.X},
	}
	for _, p := range s.Parts {
		a.Parts = append(a.Parts, gateway.Part(p))
	}
	switch s.State {
	case "done":
	case asks:
		if len(s.Questions) == 0 {
			return gateway.Refuse("it asks without a question")
		}
		q := s.Questions[0]
		a.Kind, a.Reply, a.Body, a.Answers = gateway.Asks, true, q.Text, ""
		a.ID = uuid.NewSHA1(uuid.NameSpaceURL, []byte(m.ID+"\n"+q.ID)).String()
		a.Note = encode(note{Question: q.ID, Request: request, Thread: s.Thread})
	default:
		a.Subject = "[" + s.State + "] " + s.Subject
	}
	a.Digest = sha256.Sum256([]byte(a.Subject + "\n" + a.Body))
	_, err := e.g.rt.Ask(ctx, e.caller, a)
	if err != nil && !errors.Is(err, gateway.ErrConflict) && !errors.Is(err, gateway.ErrUnknown) {
		return err // in the other cases an attempt before has brought it, or the task is over
	}
	return e.store(ctx, progress{})
}

// key names the record of a task's conversation with an agent.
func (e *attempt) key() state.Key {
	w := e.d.Wrapper
	parts := []string{w.SourceSwarm, w.TaskOwner, w.Payload.TaskID, w.Payload.Recipient().Name}
	if w.Type == mail.Interrupt && !e.cancels() {
		parts = append(parts, "interrupt") // it overtakes the request under way
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x1f")))
	return state.Key{Tenant: e.d.Task.Tenant, Gateway: Name, Realm: e.p.Name, Kind: "stream", Name: hex.EncodeToString(sum[:])}
}

func (e *attempt) load(ctx context.Context) (err error) {
	e.record, e.version, err = state.Load[progress](ctx, e.g.rt.State(), e.key())
	return err
}

// keep is how long a record outlives its message.
const keep = 24 * time.Hour

func (e *attempt) store(ctx context.Context, r progress) (err error) {
	e.record = r
	e.version, err = state.Save(ctx, e.g.rt.State(), e.key(), e.version, r, keep)
	return err
}

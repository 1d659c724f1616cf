package toy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"skep/host/internal/gateway"
)

// Name is the name of the gateway's table.
const Name = "toy"

const path = "/toy/v1"

// Options are the settings of the gateway's table.
type Options struct {
	Hold     time.Duration
	MaxBody  int64
	MaxDepth int
}

// Gateway serves the protocol.
type Gateway struct {
	rt  gateway.Runtime
	opt Options
}

var _ gateway.Gateway = (*Gateway)(nil)

// New returns a gateway on a runtime.
func New(rt gateway.Runtime, opt Options) *Gateway { return &Gateway{rt, opt} }

// Name is gateway.Gateway's.
func (*Gateway) Name() string { return Name }

// Run is gateway.Gateway's: there is nothing besides the mounts.
func (*Gateway) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Discover is gateway.Gateway's: the protocol has no list of agents.
func (*Gateway) Discover(context.Context, gateway.Partner) ([]gateway.ForeignAgent, error) {
	return nil, nil
}

// Health is gateway.Gateway's.
func (*Gateway) Health() gateway.Health { return gateway.Health{OK: true} }

// Mounts is gateway.Gateway's.
func (g *Gateway) Mounts() []gateway.Mount {
	mount := func(method, pattern string, serve func(http.ResponseWriter, *http.Request, gateway.Caller) error) gateway.Mount {
		return gateway.Mount{Method: method, Pattern: path + pattern, Proof: gateway.Bearer, MaxBody: g.opt.MaxBody, Streams: true, Handler: g.handler(serve)}
	}
	return []gateway.Mount{
		mount(http.MethodPost, "", g.post), mount(http.MethodGet, "/:id", g.look),
		mount(http.MethodDelete, "/:id", g.withdraw), mount(http.MethodGet, "/:id/lines", g.stream),
	}
}

// handler identifies the caller and writes the error of a request.
func (g *Gateway) handler(serve func(http.ResponseWriter, *http.Request, gateway.Caller) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := g.rt.Identify(r)
		if err == nil {
			err = serve(w, r, c)
		}
		if err != nil && !errors.Is(err, errUnread) {
			refuse(w, err)
		}
	})
}

// errUnread is a body that could not be read: the host answers for it.
var errUnread = errors.New("the body could not be read")

// refuse writes a refusal. What is wrong with the host is not shown.
func refuse(w http.ResponseWriter, err error) {
	code, text, status := "internal", "the host could not do this", http.StatusInternalServerError
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			code, text, status = r.code, err.Error(), r.status
		}
	}
	if errors.As(err, new(*http.MaxBytesError)) {
		code, text, status = "large", "the line is too long", http.StatusRequestEntityTooLarge
	}
	w.WriteHeader(status)
	_, _ = w.Write(encode(map[string]string{"error": code, "text": text}))
}

// post takes a message.
func (g *Gateway) post(w http.ResponseWriter, r *http.Request, c gateway.Caller) error {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.opt.MaxBody))
	if errors.As(err, new(*http.MaxBytesError)) {
		return err
	}
	if err != nil {
		return errUnread
	}
	m, err := readMessage(raw, g.opt.MaxDepth)
	var x gateway.Exchange
	if err == nil {
		x, err = g.take(r.Context(), c, m, raw)
	}
	e := gateway.Event{Caller: c, Foreign: m.ID, Type: m.Kind, Text: raw, Task: x.Task.Task}
	g.rt.Record(e.WithOutcome(x.Duplicate, err))
	if err != nil {
		return err
	}
	s, err := g.await(r.Context(), c, m, x)
	if err == nil {
		_, err = w.Write(encode(s))
	}
	return err
}

// take hands a message to the runtime. An answer belongs to the exchange in which its
// question was asked.
func (g *Gateway) take(ctx context.Context, c gateway.Caller, m message, raw []byte) (gateway.Exchange, error) {
	a := gateway.Ask{
		Kind: kinds[m.Kind], ID: m.ID, Digest: m.digest(), From: m.From, Conversation: m.Thread, Subject: m.Subject, Body: m.Text,
		Raw: raw, Hops: m.Hops, Trace: m.Trace, Note: m.note(), Answers: m.Re, Reply: m.Push,
		Info: map[string]any{"protocol": Name, "type": m.Kind, "x": m.X},
	}
	if m.To != "" {
		a.To = []string{m.To}
	}
	if m.By != nil {
		a.Deadline = *m.By
	}
	for _, p := range m.Parts {
		a.Parts = append(a.Parts, gateway.Part(p))
	}
	if a.Kind != gateway.Answers && a.Kind != gateway.Resumes {
		a.Answers = ""
		return g.rt.Ask(ctx, c, a)
	}
	asked, err := g.asked(ctx, c, m)
	if err != nil {
		return gateway.Exchange{}, err
	}
	a.Swarm, a.Conversation = asked.Task.Swarm, asked.Conversation
	if a.Kind == gateway.Resumes {
		a.Results = []gateway.CallResult{{Call: m.Re, Content: m.Text}}
	}
	if _, err := g.rt.Ask(ctx, c, a); err != nil {
		return gateway.Exchange{}, err
	}
	return asked, nil
}

// recent is how many exchanges of a caller are looked through for a question.
const recent = 100

// asked is the exchange of the thread in which a question waits; for a repeat, its newest.
func (g *Gateway) asked(ctx context.Context, c gateway.Caller, m message) (found gateway.Exchange, err error) {
	list, err := g.rt.List(ctx, c, "", recent)
	if err != nil {
		return found, err
	}
	for _, x := range list {
		if x.Conversation != m.Thread || x.ID == m.ID {
			continue
		}
		if found.ID == "" {
			found = x
		}
		a, ok, err := g.rt.Look(ctx, x)
		if err != nil {
			return found, err
		}
		for _, q := range a.Questions {
			if ok && q.ID == m.Re {
				return x, nil
			}
		}
	}
	if found.ID == "" {
		err = gateway.ErrUnknown
	}
	return found, err
}

// errHeld ends the wait of a request that was held long enough.
var errHeld = errors.New("held long enough")

// await returns the state of a message when it has an answer or asks, else after the time
// of a held request. A message whose sender has stopped waiting is withdrawn.
func (g *Gateway) await(ctx context.Context, c gateway.Caller, m message, x gateway.Exchange) (status, error) {
	if x.Receipt == nil || m.Kind == "tell" { // nothing is owed
		return status{ID: m.ID, Thread: x.Conversation, State: "done"}, nil
	}
	wait, end := context.WithTimeoutCause(ctx, g.opt.Hold, errHeld)
	defer end()
	if m.By != nil {
		wait, end = context.WithDeadline(wait, *m.By)
		defer end()
	}
	a, err := g.rt.Wait(wait, x)
	switch {
	case err == nil:
		return g.status(ctx, x, a)
	case m.By != nil && !time.Now().Before(*m.By):
		if err := g.rt.Cancel(ctx, c, x.ID, "its time is over"); err != nil && !errors.Is(err, gateway.ErrConflict) {
			return status{}, err
		}
		return status{ID: x.ID, Thread: x.Conversation, State: "timed_out"}, nil
	case errors.Is(err, errHeld):
		return status{ID: x.ID, Thread: x.Conversation, State: working}, nil
	}
	return status{}, err
}

// status is a state with its blobs.
func (g *Gateway) status(ctx context.Context, x gateway.Exchange, a gateway.Answer) (status, error) {
	s := status{ID: x.ID, Thread: x.Conversation, State: states[a.Outcome], From: a.From, Subject: a.Subject, Text: a.Body, X: readNote(x.Note).X}
	for _, q := range a.Questions {
		s.Questions = append(s.Questions, question{ID: q.ID, From: q.From, Text: q.Text, Person: q.Call != ""})
	}
	for _, ref := range a.Parts {
		data, err := g.rt.Blob(ctx, x, ref)
		if errors.Is(err, gateway.ErrUnknown) {
			continue
		}
		if err != nil {
			return s, err
		}
		s.Parts = append(s.Parts, part{ref.Name, ref.Type, data})
	}
	return s, nil
}

// look is the state now.
func (g *Gateway) look(w http.ResponseWriter, r *http.Request, c gateway.Caller) error {
	x, err := g.rt.Find(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	a, ok, err := g.rt.Look(r.Context(), x)
	s := status{ID: x.ID, Thread: x.Conversation, State: working}
	if err == nil && ok {
		s, err = g.status(r.Context(), x, a)
	}
	if err == nil {
		_, err = w.Write(encode(s))
	}
	return err
}

// withdraw cancels a message.
func (g *Gateway) withdraw(w http.ResponseWriter, r *http.Request, c gateway.Caller) error {
	if err := g.rt.Cancel(r.Context(), c, r.PathValue("id"), "withdrawn"); err != nil {
		return err
	}
	return g.look(w, r, c)
}

// stream shows the pieces of an answer.
func (g *Gateway) stream(w http.ResponseWriter, r *http.Request, c gateway.Caller) error {
	from, err := strconv.ParseInt("0"+r.URL.Query().Get("from"), 10, 64)
	if err != nil {
		return invalid("from is no number")
	}
	x, err := g.rt.Find(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	stream, err := g.rt.Follow(r.Context(), x, from)
	if err != nil {
		return err
	}
	defer stream.Close()
	out := http.NewResponseController(w)
	if err := out.Flush(); err != nil {
		return nil // the reader is gone
	}
	for {
		p, err := stream.Next(r.Context())
		if err != nil {
			return err
		}
		line, last, err := g.line(r.Context(), x, p)
		if err != nil {
			return err
		}
		if _, err := w.Write(encode(line)); err != nil {
			return nil // the reader is gone
		}
		if err := out.Flush(); err != nil || last {
			return nil
		}
	}
}

// line is a piece of a stream as a line.
func (g *Gateway) line(ctx context.Context, x gateway.Exchange, p gateway.Piece) (line any, last bool, err error) {
	switch p.Kind {
	case gateway.Chunk:
		return piece{N: &p.N, Chunk: &p.Text}, false, nil
	case gateway.Progress:
		return piece{Progress: &p.Text, Fraction: p.Fraction}, false, nil
	}
	line, err = g.status(ctx, x, *p.Answer)
	return line, true, err
}

package acp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/message"
	"skep/host/internal/gateway/wire"
)

// reply is what a partner answers to a request.
type reply struct {
	message  *incoming     // nil for none
	location string        // where the answer will be, empty if that was not told
	wait     time.Duration // before it is looked for there
	// lost is closed when the connection ends over which a socket or a broker has got the
	// message; nil for none.
	lost <-chan struct{}
}

// send brings the message to the partner: on an open connection, by its topics, to its
// address, or to its mailbox. wait is how long it may take to answer; 0 for a
// message without an answer.
func (a *attempt) send(ctx context.Context, wait time.Duration) (reply, error) {
	got, err := a.bring(ctx, wait)
	a.sent = err == nil
	return got, err
}

func (a *attempt) bring(ctx context.Context, wait time.Duration) (reply, error) {
	a.tried = true
	switch s, err := a.g.deliverOpen(ctx, a.caller, a.m.Header.Receiver, a.text); {
	case err != nil && !a.p.RetryInDoubt: // another way would bring it twice
		return reply{}, fmt.Errorf("%w: %w", errConnectionLost, err)
	case err == nil && s != nil:
		return reply{lost: s.ctx.Done()}, nil
	}
	if topicsOf(a.p) != "" {
		return a.enqueue(ctx)
	}
	if a.p.URL == "" || a.p.Client == nil {
		if to := string(a.m.Header.Receiver); !ownsAgent(a.p, a.caller, to) {
			return reply{}, gateway.Refuse("%s has no url and may not fetch what is for %q: add it to ids in [gateways.acp.partners.%s]", a.p.Name, to, a.p.Name)
		}
		_, err := a.g.keep(ctx, a.caller, a.m, a.text)
		return reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.p.URL, bytes.NewReader(a.text))
	if err != nil {
		return reply{}, gateway.Refuse("the url of %s cannot be called: %v", a.p.Name, err)
	}
	req.Header.Set("Content-Type", jsonContentType)
	if wait > 0 {
		req.Header.Set("Prefer", "wait="+strconv.Itoa(int(wait/time.Second)))
	}
	a.d.Trace.Fields(req.Header.Set)
	return a.g.fetch(a.p, req)
}

// deliverOpen sends a text on an open connection of a realm's agent, and returns the connection;
// nil if there is none. After an error the agent may have the text.
func (g *Gateway) deliverOpen(ctx context.Context, c gateway.Caller, receiver message.AgentID, text []byte) (*socket, error) {
	s, _ := g.sockets.Find(c, string(receiver))
	if s == nil {
		return nil, nil
	}
	return s, wire.DeliverSocket(ctx, s.conn, text, socketWrite)
}

// poll looks for the answer at the place that the partner has told.
func (a *attempt) poll(ctx context.Context, got reply) (reply, error) {
	look := func(got reply) gateway.Look {
		isNew := a.show(ctx, got)
		return gateway.Look{Done: got.message != nil && a.isAnswer(*got.message), News: isNew, Location: got.location, Wait: got.wait}
	}
	first := look(got)
	if first.Done || first.Location == "" {
		return got, nil
	}
	trouble, err := gateway.Poll(ctx, first, func(req *http.Request) (gateway.Look, error) {
		var err error
		got, err = a.g.fetch(a.p, req)
		return look(got), err
	})
	a.trouble = trouble
	return got, err
}

// readReply reads the message in an answer, of which a byte more than max_body was taken.
func (g *Gateway) readReply(text []byte) (incoming, error) {
	if int64(len(text)) > g.MaxBody {
		return incoming{}, g.tooLarge()
	}
	return g.reader.read(text)
}

// fetch sends a request and reads the message in its answer. An ERROR is an answer
// whatever its status is, but for those after which the same message is sent again.
func (g *Gateway) fetch(p gateway.Partner, req *http.Request) (reply, error) {
	resp, err := p.Client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	text, err := wire.ReadBody(io.LimitReader(resp.Body, g.MaxBody+1), resp.ContentLength)
	if err != nil {
		return reply{}, err
	}
	failed := resp.StatusCode >= http.StatusMultipleChoices
	if failed && (resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests) {
		return reply{}, gateway.StatusOf(resp)
	}
	var got reply
	if len(text) > 0 { // many a server writes a message without its Content-Type
		in, err := g.readReply(text)
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		switch {
		case err == nil:
			got.message = &in
		case isJSON(kind) && !failed:
			return got, gateway.Refuse("the partner's answer is no message: %v", err)
		}
	}
	if failed && got.message != nil {
		return got, nil
	}
	if failed {
		return got, gateway.StatusOf(resp)
	}
	if at := resp.Header.Get("Location"); at != "" && resp.StatusCode == http.StatusAccepted {
		got.wait = gateway.StatusOf(resp).RetryAfter
		got.location, err = gateway.ResolveLocation(req.URL, at)
	}
	return got, err
}

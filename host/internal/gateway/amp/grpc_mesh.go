package amp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/grpcmessage"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/grpcserve"
	"skep/host/internal/swarm"
	"skep/spec/gateways/amp/amppb"
)

// mesh serves one of the services of M-097: the same pipeline as over HTTP.
type mesh struct {
	g *Gateway
	// token is the one of a message that names none.
	token string
}

// meshCall is one call with its message.
type meshCall struct {
	mesh
	ctx context.Context
	// r has the header of the call, and a credential of the message.
	r  *http.Request
	c  gateway.Caller
	in message.Received
	// members is set where the message has some besides its text: then its answer has, too.
	members bool
}

// begin reads the message of a call and hands it on.
func (s mesh) begin(ctx context.Context, r *http.Request, m *grpcmessage.Wire) (k *meshCall, got reply, err error) {
	of := callerOf(ctx)
	k = &meshCall{mesh: s, ctx: ctx, r: r.WithContext(ctx), c: of.Caller}
	text, members, err := s.g.textOf(s.token, m.Raw)
	k.members = members
	k.in, k.c, err = s.g.read(s.g.reader, k.r, of.Caller, of.shown, text, err)
	if err != nil {
		s.g.record(k.c, k.in, text, reply{}, err)
		return k, got, err
	}
	if k.in.Headers.Hints[hintTrace] == nil {
		k.in.Headers.Hints = gateway.WithTrace(k.in.Headers.Hints, "", swarm.HeaderTrace(r.Header))
	}
	got, err = s.g.accept(ctx, k.c, k.in, text, false)
	s.g.record(k.c, k.in, text, got, err)
	return k, got, err
}

// invoke takes a message and returns the response.
func (s mesh) invoke(ctx context.Context, m *grpcmessage.Wire) (any, error) {
	ctx, call, end := grpcserve.Begin(ctx)
	defer end()
	k, got, err := s.begin(ctx, call.Request, m)
	switch {
	case err != nil:
		return nil, s.g.fail(ctx, k.c, k.in, err)
	case got.payload != nil:
		return k.respond(k.in.Token, s.g.responseTo(k.c, k.in, *got.payload))
	case got.relay != nil:
		return k.relayed(*got.relay)
	case !got.owed:
		return &grpcmessage.Wire{}, nil
	case got.accepted:
		return k.accepted(got.exchange)
	}
	return k.exchange(got.exchange, gateway.PreferredWait(k.r, s.g.Hold, s.g.Hold))
}

// emit takes a message, and tells where its answer will be.
func (s mesh) emit(ctx context.Context, m *grpcmessage.Wire) (any, error) {
	ctx, call, end := grpcserve.Begin(ctx)
	defer end()
	k, got, err := s.begin(ctx, call.Request, m)
	if err != nil {
		return nil, s.g.fail(ctx, k.c, k.in, err)
	}
	if got.relay != nil {
		return nil, s.g.fail(ctx, k.c, k.in, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "a registered agent answers in the reply: use Invoke or Connect"))
	}
	receipt := &amppb.Receipt{Id: k.in.ID}
	if got.owed {
		receipt.Id, receipt.Location = got.exchange.ID, locationOf(k.in.Token, got.exchange)
	}
	return receipt, nil
}

// locationOf is where the answer of an exchange will be over HTTP.
func locationOf(token string, x gateway.Exchange) string {
	return prefixOf(token) + answersPath + gateway.PathOfID(x.ID)
}

// exchange returns the answer of an exchange, or after a time that the message was taken.
func (k *meshCall) exchange(x gateway.Exchange, wait time.Duration) (any, error) {
	n, err := readNote(x)
	if err != nil {
		return nil, k.g.fail(k.ctx, k.c, k.in, err)
	}
	a, err := k.g.await(k.ctx, k.c, x, n, wait)
	switch {
	case err == nil:
		m, _ := k.g.answerTo(k.c, x, n, a)
		if m.Type == message.Error {
			return nil, k.g.statusWith(k.c, n.Token, m, message.Faultf(message.Timeout, "", "%s", a.Body)).Err()
		}
		return k.respond(n.Token, m)
	case errors.Is(err, gateway.ErrHeld), errors.Is(err, gateway.ErrDraining):
		return k.accepted(x)
	case k.ctx.Err() != nil:
		err = endOf(k.ctx)
	}
	return nil, k.g.fail(k.ctx, k.c, n.received(), err)
}

// relayed returns the answer of a registered agent.
func (k *meshCall) relayed(r relay) (any, error) {
	m := r.run(k.ctx)
	if f := faultIn(m); f != nil {
		return nil, k.g.statusWith(k.c, k.in.Token, m, f).Err()
	}
	return k.respond(k.in.Token, m)
}

// accepted answers that a message was taken; the trailer has where its answer will be.
func (k *meshCall) accepted(x gateway.Exchange) (any, error) {
	n, err := readNote(x)
	if err != nil {
		return nil, k.g.fail(k.ctx, k.c, k.in, err)
	}
	_ = grpc.SetTrailer(k.ctx, metadata.Pairs(locationTrailer, locationOf(n.Token, x))) // it fails outside of a call
	return k.respond(n.Token, k.g.acceptedTo(k.c, x, n))
}

// locationTrailer has in the trailer of a call where the answer will be over HTTP.
const locationTrailer = "location"

func (k *meshCall) respond(token string, m message.Message) (any, error) {
	text, err := k.g.write(k.c, token, m)
	if err != nil {
		return nil, k.g.fail(k.ctx, k.c, k.in, err)
	}
	return wireOf(text, k.members), nil
}

// health gives the state of the host, or to a known caller the state of an agent.
func (s mesh) health(ctx context.Context, in *amppb.HealthRequest) (any, error) {
	of := callerOf(ctx)
	var body healthBody
	var err error
	switch {
	case in.GetAgentId() == "":
		body = s.g.hostHealth(of.Caller, of.shown)
	case !of.shown:
		err = errNoCredential
	default:
		body, err = s.g.agentHealth(of.Caller, in.GetAgentId())
	}
	if err != nil {
		return nil, s.g.fail(ctx, of.Caller, message.Received{Token: s.token}, err)
	}
	out := &amppb.HealthReply{Status: body.Status, ProtocolVersion: body.Protocol, Timestamp: body.Timestamp}
	if body.Agent != nil {
		out.AgentId = body.Agent.ID
	}
	for _, c := range body.Capabilities {
		out.Capabilities = append(out.Capabilities, c.ID)
	}
	if body.Load != nil {
		out.Load = int32(*body.Load)
	}
	return out, nil
}

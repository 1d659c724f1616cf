package amp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
)

// contextUpdate is the event that changes a context (M-037).
const contextUpdate = "context_update"

// updateByEvent changes the context that an event has, unless check refuses it. One without an id
// is the context of its session, which the first such event makes. A repeat of the event changes
// nothing.
func (g *Gateway) updateByEvent(ctx context.Context, c gateway.Caller, in message.Received, digest [32]byte, check func(sharedContext) error) (sharedContext, error) {
	who, err := g.contextCallerOf(c, in.Source.Agent)
	if err != nil {
		return sharedContext{}, err
	}
	if err := g.Runtime.CheckRate(c); err != nil {
		return sharedContext{}, err
	}
	r := contextRequest{change: changeOf(c, in.ID, digest), check: check}
	if err := readPayload(in.Payload, &r); err != nil {
		return sharedContext{}, err
	}
	r.ID = cmp.Or(r.ID, r.Given.ID)
	if r.ID != "" {
		return g.contexts.update(ctx, who, r)
	}
	if r.Given.Session == "" {
		return sharedContext{}, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.context needs an id or a session_id")
	}
	r.name = sessionName(r.Given.Session)
	return g.contexts.updateSession(ctx, who, r)
}

// updateSession changes the context of a session of the caller's realm, or makes it.
func (s contexts) updateSession(ctx context.Context, who contextCaller, r contextRequest) (sharedContext, error) {
	for {
		r.ID = who.realm + ":" + r.name
		updated, err := s.update(ctx, who, r)
		if f := new(message.Fault); !errors.As(err, &f) || f.Code != message.ContextNotFound {
			return updated, err
		}
		r.ID = ""
		made, err := s.create(ctx, who, r)
		if err != nil || made.made { // else another event has made it meanwhile
			return made, err
		}
	}
}

// sessionName is the name of the context of a session.
func sessionName(session string) string {
	sum := sha256.Sum256([]byte(session))
	return "session-" + hex.EncodeToString(sum[:16])
}

// readersAmong returns the agents that may read a context.
func readersAmong(agents []gateway.ExposedAgent, c sharedContext) []gateway.ExposedAgent {
	return slices.DeleteFunc(slices.Clone(agents), func(a gateway.ExposedAgent) bool { return !c.canRead(nameOf(a)) })
}

// checkContext refuses a request that names a context which its sender may not read. A session
// alone is the key of a conversation (M-063).
func (g *Gateway) checkContext(ctx context.Context, c gateway.Caller, in message.Received, raw json.RawMessage) error {
	var of struct {
		ID string `json:"id"`
		Of string `json:"context_id"`
	}
	_ = json.Unmarshal(raw, &of) // another form names none
	id := cmp.Or(of.Of, of.ID)
	if id == "" {
		return nil
	}
	who, err := g.contextCallerOf(c, in.Source.Agent)
	if err == nil {
		_, err = g.contexts.find(ctx, who, id)
	}
	return err
}

package router

import (
	"encoding/json"
	"errors"
	"fmt"

	"skep/host/internal/envelope"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// traceMember is where a payload's routing_info has the trace, for peers that pass
// on messages and drop headers.
const traceMember = "traceparent"

// encode makes the body of a request: strictly what the schema takes.
func (r *Router) encode(peer Peer, p swarm.Parcel, back bool) (string, error) {
	w := p.Wrapper
	if peer.BodyToken {
		w.AuthToken = peer.Token
	}
	if p.Trace != "" {
		w.Payload.RoutingInfo = put(w.Payload.RoutingInfo, traceMember, p.Trace)
	}
	raw, err := w.AppendJSON(nil)
	if err != nil {
		return "", fmt.Errorf("it cannot be written as a MAIL wrapper: %w", err)
	}
	if peer.Signed {
		if raw, err = r.sign(w, raw, back); err != nil {
			return "", fmt.Errorf("it cannot be signed: %w", err)
		}
	}
	return `{"message":` + string(raw) + "}", nil
}

// sign adds the signature of a wrapper that is written as raw.
func (r *Router) sign(w mail.Interswarm, raw []byte, back bool) ([]byte, error) {
	if r.opt.Signer == nil {
		return nil, errors.New("this host has no key")
	}
	signature, err := r.opt.Signer.Sign(raw, envelope.Way{Back: back, Target: w.TargetSwarm}, r.opt.Now())
	if err != nil {
		return nil, err
	}
	w.Metadata = put(w.Metadata, envelope.Member, signature)
	return w.AppendJSON(nil)
}

// put adds a member to a JSON object, which may be missing, in the place of one of
// that name. What is no object stays.
func put(object json.RawMessage, name, value string) json.RawMessage {
	members := map[string]json.RawMessage{}
	if len(object) > 0 && json.Unmarshal(object, &members) != nil {
		return object
	}
	members[name], _ = json.Marshal(value) // a string always encodes
	out, err := json.Marshal(members)
	if err != nil {
		return object
	}
	return out
}

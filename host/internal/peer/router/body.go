package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"skep/host/internal/peer/signature"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// encode returns the body of a request, strictly as the schema defines it
//
func (r *Router) encode(peer Peer, p swarm.Delivery, back bool) (string, error) {
	w := p.Wrapper
	w.TaskContributors = contributorsFor(w, back)
	if peer.BodyToken {
		w.AuthToken = peer.Token
	}
	// For peers that drop headers.
	p.Trace.Fields(func(name, value string) { w.Payload.RoutingInfo = setMember(w.Payload.RoutingInfo, name, value) })
	raw, err := w.AppendJSON(nil)
	if err != nil {
		return "", fmt.Errorf("it cannot be written as a MAIL wrapper: %w", err)
	}
	if peer.SignRequests {
		if raw, err = r.sign(w, raw, back); err != nil {
			return "", fmt.Errorf("it cannot be signed: %w", err)
		}
	}
	return `{"message":` + string(raw) + "}", nil
}

// contributorsFor returns the contributors that a wrapper names on a route. A reference
// server decides by them, not by the route, whether it has the task: on the way
// forward they have none of its instances, on the way back one, if need be the one
// that it makes for this host.
func contributorsFor(w mail.Interswarm, back bool) []string {
	theirs := func(c string) bool {
		o, err := mail.ParseForeignOwner(c)
		return err == nil && o.Swarm == w.TargetSwarm
	}
	switch {
	case !back:
		return slices.DeleteFunc(slices.Clone(w.TaskContributors), func(c string) bool { return c != w.TaskOwner && theirs(c) })
	case slices.ContainsFunc(w.TaskContributors, theirs):
		return w.TaskContributors
	}
	runner := mail.Owner{Role: mail.RoleSwarm, ID: mail.EncodeID(w.SourceSwarm), Swarm: w.TargetSwarm}
	return append(slices.Clone(w.TaskContributors), runner.String())
}

// sign adds the signature of the wrapper whose encoding is raw.
func (r *Router) sign(w mail.Interswarm, raw []byte, back bool) ([]byte, error) {
	if r.opt.Signer == nil {
		return nil, errors.New("this host has no key")
	}
	signed, err := r.opt.Signer.Sign(raw, signature.Route{Back: back, Target: w.TargetSwarm}, r.opt.Now())
	if err != nil {
		return nil, err
	}
	w.Metadata = setMember(w.Metadata, signature.Member, signed)
	return w.AppendJSON(nil)
}

// setMember sets a member of a JSON object, which may be missing. It returns
// other JSON unchanged.
func setMember(object json.RawMessage, name, value string) json.RawMessage {
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

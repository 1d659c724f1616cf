package amp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/wire"
)

// contextVerbs begin the verbs of contexts; the operation follows.
const contextVerbs = "context_"

// contextArgs are the arguments of the verbs of contexts.
type contextArgs struct {
	Context string   `json:"context"`
	Sources []string `json:"sources"`
	Session string   `json:"session"`
	Shared  object   `json:"shared_memory"`
	Own     object   `json:"own_memory"`
	Read    []string `json:"read"`
	Write   []string `json:"write"`
	Mode    string   `json:"mode"`
	Version int64    `json:"if_version"`
	Seconds int      `json:"expires_in"`
}

// actOnContext does an operation on contexts for the agents of a swarm. Nothing is sent to the
// partner, in whose realm a new context is made.
func (g *Gateway) actOnContext(ctx context.Context, p gateway.Partner, call gateway.Act) (json.RawMessage, error) {
	var args contextArgs
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, fmt.Errorf("%w: the arguments do not have the form of the verb: %w", gateway.ErrInvalid, err)
	}
	operation, known := strings.CutPrefix(call.Verb, contextVerbs)
	if !known {
		return nil, fmt.Errorf("%w: there is no verb %q", gateway.ErrInvalid, call.Verb)
	}
	who := contextCaller{tenant: p.Tenant, realm: p.Name, full: everyone + "@" + call.Task.Swarm, own: call.Task.Swarm}
	r := args.request(who, operation)
	r.name = uuid.NewSHA1(uuid.NameSpaceURL, []byte(call.Key)).String()
	r.change.id = r.name
	done, err := g.contexts.do(ctx, who, r)
	g.Runtime.Record(gateway.Event{Caller: p.Caller(), Foreign: cmp.Or(done.ID, r.ID), Type: call.Verb, Out: true, Task: call.Task.Task}.WithOutcome(false, err))
	if f := new(message.Fault); errors.As(err, &f) {
		kind := gateway.ErrPartner
		if f.Code == message.InvalidSchema {
			kind = gateway.ErrInvalid
		}
		return nil, fmt.Errorf("%w: [%s] %s", kind, cmp.Or(f.Reason, string(f.Code)), f.Text)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"context": done.shownTo(who), "conflicts": append([]string{}, done.Conflicts...)})
}

// request is the operation that a message would ask for.
func (a contextArgs) request(who contextCaller, operation string) contextRequest {
	r := contextRequest{Operation: operation, ID: a.Context, Sources: a.Sources, Mode: a.Mode, IfVersion: a.Version}
	r.Given = contextValues{Session: a.Session, Shared: a.Shared}
	if a.Own != nil {
		r.Given.Private = object{who.own: wire.MustEncode(a.Own)}
	}
	if a.Read != nil || a.Write != nil {
		r.Given.Access = &access{Read: a.Read, Write: a.Write}
	}
	if a.Seconds > 0 {
		r.Given.Expires = timestamp(time.Now().Add(time.Duration(a.Seconds) * time.Second))
	}
	return r
}

package amp

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
)

// delegationKind is the kind of the records of subtasks that agents of ours have delegated: an
// answer that comes after a restart finds its task by them.
const delegationKind = "delegation"

// callbacksPath is the part of the paths of callbacks behind a prefix; the id of the message that
// delegates follows.
const callbacksPath = "callbacks/"

func delegationKey(c gateway.Caller, id string) state.Key {
	return state.Key{Tenant: c.Principal.Tenant, Gateway: Name, Realm: c.Realm, Kind: delegationKind, Name: id}
}

// keepDelegation keeps what delivers the answer of a subtask, for as long as one may come.
func (g *Gateway) keepDelegation(ctx context.Context, p gateway.Partner, d swarm.Delivery) error {
	return state.Change(ctx, g.Runtime.State(), delegationKey(p.Caller(), d.Wrapper.MessageID), p.Timeout+p.GiveUp, func(of *gateway.OutboxRef) error {
		*of = gateway.RefOf(d)
		return nil
	})
}

// composeDelegation makes the message one that delegates a subtask (M-034). The answer comes to a
// callback, or else as that of any question: to a partner with queues, which may reach only the
// broker, and where the host's address is not known (M-035, M-036).
func (a *attempt) composeDelegation() error {
	w := a.written
	if w.Capability == "" {
		return gateway.Refuse("the action has written no capability to delegate")
	}
	subtask := map[string]any{"capability": w.Capability, "parameters": json.RawMessage(cmp.Or(string(w.Parameters), "{}"))}
	if a.calledBack = a.g.PublicURL != "" && !a.queued; a.calledBack {
		subtask["completion_callback"] = strings.TrimSuffix(a.g.PublicURL, "/") + prefixOf(a.g.Token) + callbacksPath + gateway.PathOfID(a.m.ID)
	}
	a.m.Destination.Capability = w.Capability
	a.m.Payload = wire.MustEncode(map[string]any{"delegation": map[string]any{"parent_task_id": a.m.Source.Session, "subtask": subtask}})
	return nil
}

// callbackHandler takes the answers to delegated subtasks, below a path.
func (g *Gateway) callbackHandler(path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := replier{g: g, w: w, r: r, token: tokenOfPath(path)}
		in, c, text, ok := out.receive()
		if !ok {
			return
		}
		id, _ := gateway.IDOfPath(strings.TrimPrefix(r.URL.Path, path))
		got, err := g.calledBack(r.Context(), c, id, in)
		g.record(c, in, text, got, err)
		if err != nil {
			out.refuse(c, in, err)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
}

// calledBack takes an answer to a subtask that was delegated to the caller's realm. Its first last
// one counts; a repeat changes nothing.
func (g *Gateway) calledBack(ctx context.Context, c gateway.Caller, id string, in message.Received) (reply, error) {
	if in.Type != message.Response && in.Type != message.Error {
		return reply{}, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "a callback takes a response or an error, not a message of type %s", in.Type)
	}
	if of := in.Headers.Correlation; of != "" && of != id {
		return reply{}, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "headers.correlation_id %.100q is not the message of this callback", of)
	}
	if id == "" {
		return reply{}, errNotDelegated
	}
	of, version, err := state.Load[gateway.OutboxRef](ctx, g.Runtime.State(), delegationKey(c, id))
	switch {
	case err != nil:
		return reply{}, err
	case version == 0:
		return reply{}, errNotDelegated
	case isInterim(in):
		return reply{}, g.showProgress(ctx, c, in, *of.Delivery())
	}
	x, err := g.answer(ctx, c, in, of.Delivery(), id, true)
	if err == nil {
		g.waiting.finish(c, id)
	}
	return reply{exchange: x}, err
}

// errNotDelegated refuses a callback of which the caller's realm has no subtask.
var errNotDelegated = message.Faultf(message.AgentNotFound, message.ReasonMessage, "this callback waits for no answer")

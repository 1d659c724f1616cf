package rest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

var (
	errNoRouter  = newFault(http.StatusServiceUnavailable, "interswarm router not available")
	errRouteGone = newFault(http.StatusGone,
		"this route has gone: an answer to another swarm goes to its POST /interswarm/back, in a wrapper")
)

// interswarmFields are the required fields of a wrapper with their types, in the
// order of their checks. auth_token and metadata are optional.
var interswarmFields = []parameter{
	{"message_id", "str", false}, {"source_swarm", "str", false}, {"target_swarm", "str", false}, {"timestamp", "str", false},
	{"payload", "dict", false}, {"msg_type", "str", false}, {"auth_token", "str", true}, {"metadata", "dict", true},
	{"task_owner", "str", false}, {"task_contributors", "list", false},
}

// parseInterswarm reads the body of /interswarm/forward and /interswarm/back. It
// ignores unknown members and nulls. raw is the wrapper as sent, which is
// what the peer has signed.
func parseInterswarm(body []byte, depth int) (w mail.Interswarm, raw []byte, err error) {
	o, err := parseObject(body, depth)
	if err != nil {
		return w, nil, err
	}
	raw, ok := o.get("message")
	if !ok || falsy(string(raw)) {
		return w, nil, badRequest("parameter 'message' is required")
	}
	inner, err := o.object("message")
	if err != nil {
		return w, nil, badRequest("parameter 'message' must be a dict, got %s", typeName(raw))
	}
	if err := inner.checkParameters(interswarmFields); err != nil {
		return w, nil, err
	}
	w, err = readInterswarm(raw, depth)
	if err != nil {
		return w, nil, badRequest("parameter 'message' is malformed: %v", err)
	}
	return w, raw, nil
}

// falsy reports whether a JSON text is falsy in Python, as the reference checks
// it.
func falsy(raw string) bool {
	switch strings.TrimSpace(raw) {
	case `""`, "0", "false", "{}", "[]":
		return true
	}
	return false
}

func readInterswarm(raw []byte, depth int) (mail.Interswarm, error) {
	w, err := mail.ParseOptions{
		Limits: mail.Limits{Depth: depth}, NullsAbsent: true, UnknownKeys: true, LooseTimes: true,
	}.Interswarm(raw)
	if err == nil && !mail.ValidTaskID(w.Payload.TaskID) {
		err = errors.New("payload.task_id: must be 1 to 256 printable characters")
	}
	return w, err
}

// forward is POST /interswarm/forward, back POST /interswarm/back. All checks
// come before the message is accepted.
func (c *call) forward() error { return c.receive(false) }

func (c *call) back() error { return c.receive(true) }

func (c *call) receive(back bool) error {
	w, raw, err := parseInterswarm(c.body, c.h.opt.MaxDepth)
	if err != nil {
		return err
	}
	if err := c.authenticateWrapper(w, raw, back); err != nil {
		return err
	}
	hops, err := parseHops(c.r.Header)
	if err != nil {
		return err
	}
	anyTenant := c.answersAnyTenant()
	if err := c.checkInterswarm(back && anyTenant); err != nil {
		return err
	}
	got, err := c.h.interswarm.Receive(c.ctx(), swarm.Incoming{
		Principal: c.principal(), Peer: w.SourceSwarm, AnyTenant: anyTenant, Swarm: c.h.opt.Swarm, Back: back, Wrapper: w,
		Hops: hops, Trace: cmp.Or(swarm.HeaderTrace(c.r.Header), routedTrace(w.Payload.RoutingInfo)),
	})
	if err != nil {
		return err
	}
	return c.reply(struct {
		Swarm  string `json:"swarm"`
		Task   string `json:"task_id"`
		Status string `json:"status"`
		Runner string `json:"local_runner"`
	}{c.h.opt.Swarm, got.Task.Task, "success", got.Runner})
}

// checkInterswarm refuses a wrapper for a tenant whose swarm takes none. Where the task
// may be any tenant's, the runtime does, by the task's own tenant: no tenant cuts off
// another's answers.
func (c *call) checkInterswarm(anyTenant bool) error {
	def, err := c.definition()
	if err == nil && !anyTenant && !def.Interswarm {
		return errNoRouter
	}
	return err
}

// authenticateWrapper checks that the caller is the swarm that the wrapper names, its
// signature, and its target.
func (c *call) authenticateWrapper(w mail.Interswarm, raw []byte, back bool) error {
	if w.SourceSwarm != c.w.who.PeerSwarm() {
		return forbidden("invalid role: this key does not speak for the swarm that 'source_swarm' names")
	}
	if err := c.checkTokenCreator(); err != nil {
		return err
	}
	if err := c.h.opt.Signatures.Verify(raw, w.SourceSwarm, c.h.opt.Swarm, back, c.h.opt.Now()); err != nil {
		return c.rejectSignature(w, back, err)
	}
	if w.TargetSwarm != c.h.opt.Swarm {
		return badRequest("parameter 'target_swarm' must be '%s', the swarm of this host", c.h.opt.Swarm)
	}
	return c.checkOwners(w)
}

// rejectSignature refuses a wrapper with an invalid signature and records that in
// the task's log, where the user of the task can see it.
func (c *call) rejectSignature(w mail.Interswarm, back bool, err error) error {
	refusal := fmt.Sprintf("invalid signature: the message does not count as one of swarm '%s': %v", w.SourceSwarm, err)
	in := swarm.Incoming{Principal: c.principal(), Peer: w.SourceSwarm, AnyTenant: c.answersAnyTenant(), Swarm: c.h.opt.Swarm, Back: back, Wrapper: w}
	if err := c.h.interswarm.RecordRefusedWrapper(c.ctx(), in, refusal); err != nil {
		c.h.opt.Logger.Warn("a task was not told that a message for it was refused", "task_id", w.Payload.TaskID, "err", err)
	}
	return unauthorized(refusal)
}

// routedTrace returns the trace in a message, for peers that drop headers. The headers
// take precedence.
func routedTrace(routing []byte) swarm.Trace {
	var info struct {
		Parent any `json:"traceparent"`
		State  any `json:"tracestate"`
	}
	if json.Unmarshal(routing, &info) != nil {
		return swarm.Trace{}
	}
	parent, _ := info.Parent.(string)
	state, _ := info.State.(string)
	return swarm.ParseTrace(parent, state)
}

// hopHeader counts how many swarms have forwarded the message.
const hopHeader = "X-Mail-Hop"

// parseHops reads the hop header; it is optional.
func parseHops(h http.Header) (int, error) {
	text := h.Get(hopHeader)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, badRequest("the header X-MAIL-Hop must be a number")
	}
	if n > swarm.MaxHops {
		return 0, badRequest("the message was handed on %d times, at most %d: do the peers send it in a circle?", n, swarm.MaxHops)
	}
	return n, nil
}

// checkOwners checks the contributors of the task: any role of another swarm, one
// of MAIL's three roles of this one. The owner and the calling swarm must be
// among them.
func (c *call) checkOwners(w mail.Interswarm) error {
	owned, named := false, false
	for _, text := range append([]string{w.TaskOwner}, w.TaskContributors...) {
		o, err := mail.ParseForeignOwner(text)
		if err != nil {
			return badRequest("parameter 'task_contributors' is malformed: %v", err)
		}
		if o.Swarm == c.h.opt.Swarm && !o.Role.Valid() {
			return badRequest("invalid role: %s", o.Role)
		}
		named = named || o.Swarm == w.SourceSwarm
	}
	for _, text := range w.TaskContributors {
		owned = owned || text == w.TaskOwner
	}
	switch {
	case !owned:
		return badRequest("parameter 'task_contributors' must contain the 'task_owner'")
	case !named:
		return forbidden("invalid role: the swarm that calls is not among the contributors of the task")
	}
	return nil
}

// interswarmResponse is POST /interswarm/response. The reference's client has it,
// and no server does.
func (c *call) interswarmResponse() error { return errRouteGone }

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
	noRouter = newFault(http.StatusServiceUnavailable, "interswarm router not available")
	noAnswer = newFault(http.StatusGone,
		"this route has gone: an answer to another swarm goes to its POST /interswarm/back, in a wrapper")
)

// wrapperFields are what a wrapper must have, in the order in which they are
// looked at, with their types (contract 1.3). auth_token and metadata may be
// missing.
var wrapperFields = []parameter{
	{"message_id", "str", false}, {"source_swarm", "str", false}, {"target_swarm", "str", false}, {"timestamp", "str", false},
	{"payload", "dict", false}, {"msg_type", "str", false}, {"auth_token", "str", true}, {"metadata", "dict", true},
	{"task_owner", "str", false}, {"task_contributors", "list", false},
}

// parseWrapper reads the body of /interswarm/forward and /interswarm/back. What
// peers of other versions add is ignored, and so are their nulls.
//
// raw is the wrapper as it was sent, which is what a peer signs.
func parseWrapper(body []byte, depth int) (w mail.Interswarm, raw []byte, err error) {
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
	if err := inner.fits(wrapperFields); err != nil {
		return w, nil, err
	}
	w, err = readWrapper(raw, depth)
	if err != nil {
		return w, nil, badRequest("parameter 'message' is malformed: %v", err)
	}
	return w, raw, nil
}

// falsy reports whether a JSON text is what the reference takes for nothing.
func falsy(raw string) bool {
	switch strings.TrimSpace(raw) {
	case `""`, "0", "false", "{}", "[]":
		return true
	}
	return false
}

func readWrapper(raw []byte, depth int) (mail.Interswarm, error) {
	w, err := mail.ParseOptions{
		Limits: mail.Limits{Depth: depth}, NullsAbsent: true, UnknownKeys: true, SpacedTimes: true,
	}.Interswarm(raw)
	if err == nil && !mail.ValidTaskID(w.Payload.TaskID) {
		err = errors.New("payload.task_id: must be 1 to 256 printable characters")
	}
	return w, err
}

// forward is POST /interswarm/forward, back POST /interswarm/back. Both look at
// all there is to look at before the message is taken.
func (c *call) forward() error { return c.fromPeer(false) }

func (c *call) back() error { return c.fromPeer(true) }

func (c *call) fromPeer(back bool) error {
	w, raw, err := parseWrapper(c.body, c.h.opt.MaxDepth)
	if err != nil {
		return err
	}
	if err := c.checkParties(w, raw, back); err != nil {
		return err
	}
	hops, err := hopsOf(c.r.Header)
	if err != nil {
		return err
	}
	if def, err := c.definition(); err != nil || !def.Interswarm {
		return cmp.Or(err, error(noRouter))
	}
	got, err := c.h.rt.Receive(c.ctx(), swarm.Incoming{
		Principal: c.principal(), Peer: w.SourceSwarm, Swarm: c.h.opt.Swarm, Back: back, Wrapper: w,
		Hops: hops, Trace: cmp.Or(trace(c.r.Header), carriedTrace(w.Payload.RoutingInfo)),
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

// checkParties looks at who sends a wrapper, and to whom.
func (c *call) checkParties(w mail.Interswarm, raw []byte, back bool) error {
	if w.SourceSwarm != c.w.who.Speaks() {
		return unauthorized("invalid role: this key does not speak for the swarm that 'source_swarm' names")
	}
	if err := c.checkMaker(); err != nil {
		return err
	}
	if err := c.h.opt.Seals.Verify(raw, w.SourceSwarm, c.h.opt.Swarm, back, c.h.opt.Now()); err != nil {
		return c.unsealed(w, back, err)
	}
	if w.TargetSwarm != c.h.opt.Swarm {
		return badRequest("parameter 'target_swarm' must be '%s', the swarm of this host", c.h.opt.Swarm)
	}
	return c.checkOwners(w)
}

// unsealed refuses a wrapper whose signature is wrong, and lets its task tell: whoever
// waits for the message there looks into that, not into the audit log.
func (c *call) unsealed(w mail.Interswarm, back bool, err error) error {
	refusal := fmt.Sprintf("invalid signature: the message does not count as one of swarm '%s': %v", w.SourceSwarm, err)
	in := swarm.Incoming{Principal: c.principal(), Peer: w.SourceSwarm, Swarm: c.h.opt.Swarm, Back: back, Wrapper: w}
	if err := c.h.rt.TurnedAway(c.ctx(), in, refusal); err != nil {
		c.h.opt.Logger.Warn("a task was not told that a message for it was refused", "task_id", w.Payload.TaskID, "err", err)
	}
	return unauthorized(refusal)
}

// carriedTrace is the trace in a message, for peers that pass messages on and drop
// headers. It counts where the header is missing.
func carriedTrace(routing []byte) string {
	var info struct {
		Trace any `json:"traceparent"`
	}
	if json.Unmarshal(routing, &info) != nil {
		return ""
	}
	if text, _ := info.Trace.(string); traceForm.MatchString(text) {
		return text
	}
	return ""
}

// hopHeader counts the swarms that a message was handed on by.
const hopHeader = "X-Mail-Hop"

// hopsOf reads the header, which peers of other kinds do not send.
func hopsOf(h http.Header) (int, error) {
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

// checkOwners looks at who is said to work on the task (contract 3.1, 3.2): any
// role of another swarm, the three of ours; the owner among them; and the swarm
// that calls.
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
		return unauthorized("invalid role: the swarm that calls is not among the contributors of the task")
	}
	return nil
}

// interswarmResponse is POST /interswarm/response, which the reference's client
// knows and nobody serves.
func (c *call) interswarmResponse() error { return noAnswer }

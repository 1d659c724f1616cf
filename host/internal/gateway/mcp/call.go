package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// call is one run of a tool.
type call struct {
	g    *Gateway
	q    *request
	req  *mcp.CallToolRequest
	tool tool
	// ctx ends with the call, the credential and the session.
	ctx context.Context
	// task is the id of the task that the arguments continue.
	task string
	x    gateway.Exchange
	// id is the id of a message that continues a task, empty for one that cannot come again.
	id string
	// recorded is set when the log of messages has the call.
	recorded bool
}

// callTool is tools/call: the message goes to the agent, and its answer is the result.
func (g *Gateway) callTool(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	q := requestOf(req)
	t, ok := g.tool(q, q.tool)
	if !ok {
		err := unknownTool(q.tool)
		g.recordCall(q, "", gateway.Exchange{}, fmt.Errorf("%w (%w)", err, gateway.ErrUnknown))
		return nil, err
	}
	q.trace = cmp.Or(metaTrace(req.Params.Meta), q.trace)
	ctx, end := q.context(ctx)
	defer end()
	c := &call{g: g, q: q, req: req, tool: t, ctx: ctx}
	res, err := c.run()
	if !c.recorded {
		g.recordCall(q, c.x.ID, gateway.Exchange{Task: c.x.Task}, err)
	}
	if err != nil {
		return c.fail(err)
	}
	return res, nil
}

// metaTrace reads the trace of a call, which counts before the one of its HTTP request
// (https://modelcontextprotocol.io/seps/414-request-meta).
func metaTrace(meta mcp.Meta) swarm.Trace {
	parent, _ := meta["traceparent"].(string)
	state, _ := meta["tracestate"].(string)
	return swarm.ParseTrace(parent, state)
}

// recordCall records what became of a call, or of an answer in its course.
func (g *Gateway) recordCall(q *request, id string, x gateway.Exchange, err error) {
	e := gateway.Event{Caller: q.caller, Foreign: id, Type: "tools/call", Text: q.body, Task: x.Task.Task}
	g.rt.Record(e.WithOutcome(x.Duplicate, err))
}

// unknownTool is the same for a tool that does not exist and for one that the caller may
// not see.
func unknownTool(name string) error {
	return &jsonrpc.Error{Code: codeInvalidParams, Message: fmt.Sprintf("unknown tool %q", name)}
}

func (c *call) run() (*mcp.CallToolResult, error) {
	if state := c.req.Params.RequestState; state != "" {
		return c.resume(state)
	}
	args, err := c.tool.read(c.req.Params.Arguments)
	if err == nil && args.input != nil {
		err = c.g.checkInput(c.tool, args.input)
	}
	if err != nil {
		return nil, refused(err.Error())
	}
	if c.task = args.TaskID; c.task != "" {
		if res, done, err := c.goOn(args); done || err != nil {
			return res, err
		}
	}
	if args.Message == "" && args.input == nil {
		return nil, refused("message is missing")
	}
	if err := c.ask(c.tool.ask(c.q, args)); err != nil {
		return nil, err
	}
	return c.finish()
}

// ask sends the message of the call.
func (c *call) ask(a gateway.Ask) (err error) {
	if a.ID, err = c.messageID(); err != nil {
		return err
	}
	c.x, err = c.g.rt.Ask(c.ctx, c.q.caller, a)
	c.recorded = true
	c.g.recordCall(c.q, cmp.Or(a.ID, c.x.ID), c.x, err)
	return err
}

// idMember is the member of _meta by which a client names its message, so that a repeat
// in another session, or without one, is the same message. It is also the experimental
// capability that declares this.
const idMember = "skep/id"

// againMember is a member of an error's data, or of a result's _meta: the same call may have another
// result later.
const againMember = "skep/again"

// mayRepeat is the data of an error, or the _meta of a result, with [againMember].
func mayRepeat() map[string]any { return map[string]any{againMember: true} }

// messageID names the message of a call: by the client's own id, else in a session by the
// id of the JSON-RPC request, else by none: it is a new message.
func (c *call) messageID() (string, error) {
	switch id, given := c.req.Params.Meta[idMember]; {
	case given:
		text, ok := id.(string)
		if !ok || text == "" || len(text) > maxID {
			return "", fmt.Errorf("%s in _meta must be a string of at most %d bytes: %w", idMember, maxID, gateway.ErrInvalid)
		}
		return "id:" + text, nil
	case c.q.session != nil:
		return "call:" + c.q.session.id + ":" + c.q.call, nil
	}
	return "", nil
}

// finish waits for the answer, and passes the agent's questions to the client.
func (c *call) finish() (*mcp.CallToolResult, error) {
	for {
		a, err := c.wait()
		if errors.Is(err, errHold) {
			return c.working(), nil
		}
		if err != nil {
			return nil, err
		}
		if a.Outcome != gateway.NeedsInput {
			return c.result(a)
		}
		if res, err := c.elicit(a); res != nil || err != nil {
			return res, err
		}
	}
}

// wait returns what the exchange has within the time of a call.
func (c *call) wait() (gateway.Answer, error) {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.g.opt.Hold, errHold)
	defer cancel()
	if token := c.req.Params.GetProgressToken(); token != nil {
		return c.follow(ctx, token)
	}
	a, err := c.g.rt.Wait(ctx, c.x)
	return a, because(ctx, err)
}

// because is the cause of ctx's end where it is the reason of err.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// follow is wait with notifications of progress. What a slow client does not read stays
// in the log: no piece is kept for it.
func (c *call) follow(ctx context.Context, token any) (gateway.Answer, error) {
	s, err := c.g.rt.Follow(ctx, c.x, 0)
	if err != nil {
		return gateway.Answer{}, because(ctx, err)
	}
	defer s.Close()
	p := &mcp.ProgressNotificationParams{ProgressToken: token}
	for {
		piece, err := s.Next(ctx)
		switch {
		case errors.Is(err, gateway.ErrStreamLost):
			a, err := c.g.rt.Wait(ctx, c.x)
			return a, because(ctx, err)
		case err != nil:
			return gateway.Answer{}, because(ctx, err)
		case piece.Kind == gateway.End:
			return *piece.Answer, nil
		case piece.Kind == gateway.Asked:
			if a, open, err := c.g.rt.Look(ctx, c.x); open || err != nil {
				return a, because(ctx, err)
			}
			continue // answered before this stream was read
		}
		if piece.Kind != gateway.Progress {
			continue
		}
		p = progress(p, piece)
		if err := c.req.Session.NotifyProgress(c.ctx, p); err != nil {
			c.g.opt.Logger.Debug("a notification of progress was not sent", "err", err)
		}
	}
}

// progress is the notification after another one: its number grows, by what is done
// where the agent reports that, else by one.
func progress(last *mcp.ProgressNotificationParams, piece gateway.Piece) *mcp.ProgressNotificationParams {
	p := &mcp.ProgressNotificationParams{ProgressToken: last.ProgressToken, Message: piece.Text, Progress: last.Progress + 1}
	if piece.Fraction != nil && *piece.Fraction*100 > last.Progress {
		p.Progress, p.Total = *piece.Fraction*100, 100
	}
	return p
}

// cancelTime is the time to withdraw an exchange.
const cancelTime = 10 * time.Second

// fail is the result for an error. Only texts that a caller may see go out.
func (c *call) fail(err error) (*mcp.CallToolResult, error) {
	switch {
	case c.ctx.Err() != nil:
		return nil, c.ended(err)
	case errors.Is(err, gateway.ErrConflict):
		return nil, &jsonrpc.Error{Code: codeInvalidRequest, Message: err.Error()}
	case errors.Is(err, gateway.ErrUnknown) && c.task == "" && c.x.ID == "" && c.req.Params.RequestState == "":
		return nil, unknownTool(c.q.tool)
	case errors.Is(err, gateway.ErrBusy), errors.Is(err, gateway.ErrDraining), errors.Is(err, gateway.ErrElsewhere):
		return busy(err.Error()), nil
	case isRefusal(err):
		return refusal(err.Error()), nil
	}
	c.g.opt.Logger.Error("a call of a tool failed", "gateway", "mcp", "tool", c.tool.name, "task_id", c.x.Task.Task, "err", err)
	return nil, &jsonrpc.Error{Code: codeInternal, Message: "internal error", Data: encode(mayRepeat())}
}

// isRefusal reports whether an error is one whose text a caller may see.
func isRefusal(err error) bool {
	return errors.As(err, new(refused)) || slices.ContainsFunc(refusals, func(kind error) bool { return errors.Is(err, kind) })
}

var refusals = []error{gateway.ErrUnknown, gateway.ErrInvalid, gateway.ErrDenied, gateway.ErrBusy, gateway.ErrDraining, gateway.ErrElsewhere}

// ended is the error of a call that ended early.
func (c *call) ended(err error) error {
	if !c.isLeft() {
		return &jsonrpc.Error{Code: codeInvalidRequest, Message: "the call was cut off: its credential or session has ended, or the host stops", Data: encode(mayRepeat())}
	}
	c.cancel()
	return err
}

// isLeft reports whether the client has ended the call, and not the credential, the session or a
// host: by a notification, or without a session by closing the connection. The connection of a
// request from another host is that host's.
func (c *call) isLeft() bool {
	cause := context.Cause(c.q.over)
	if f := swarm.ForwardingOf(c.q.over); f != nil && f.Hop {
		return errors.Is(cause, swarm.ErrCallerLeft)
	}
	return cause == nil || errors.Is(cause, context.Canceled)
}

// cancel withdraws the message of a call that the client cancelled.
func (c *call) cancel() {
	if c.x.ID == "" {
		return
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(c.ctx), cancelTime)
	defer end()
	if err := c.g.rt.Cancel(ctx, c.q.caller, c.x.ID, "the MCP client cancelled the call"); err != nil {
		c.g.opt.Logger.Warn("a cancelled call goes on", "gateway", "mcp", "task_id", c.x.Task.Task, "err", err)
	}
}

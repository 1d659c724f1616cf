package a2a

import (
	"context"
	"errors"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"skep/host/internal/gateway"
)

// requests answers the requests of all bindings.
type requests struct{ *Gateway }

var _ a2asrv.RequestHandler = requests{}

// errHeld ends the wait of a caller that is held no longer.
var errHeld = errors.New("the caller is held no longer")

// SendMessage implements [a2asrv.RequestHandler]. The answer is the task: when it has its
// answer or needs input, else after hold.
func (h requests) SendMessage(ctx context.Context, req *a2a.SendMessageRequest) (a2a.SendMessageResult, error) {
	_, x, err := h.accept(ctx, req)
	if err != nil {
		return nil, err
	}
	look := h.await
	if req.Config != nil && req.Config.ReturnImmediately {
		look = h.snapshot
	}
	task, err := look(ctx, x)
	if err != nil {
		return nil, h.protocolError(err)
	}
	return task, nil
}

// await returns the task when it has its answer or needs input, else as it is after hold.
func (g *Gateway) await(ctx context.Context, x gateway.Exchange) (*a2a.Task, error) {
	held, cancel := context.WithTimeoutCause(ctx, g.Hold, errHeld)
	defer cancel()
	a, err := g.Runtime.Wait(held, x)
	switch {
	case errors.Is(err, errHeld):
		return g.snapshot(ctx, x)
	case err != nil:
		return nil, err
	}
	room := int64(maxBlobs)
	return g.taskWith(ctx, x, a, &room)
}

// GetTask implements [a2asrv.RequestHandler]. Tasks have no history: it is the caller's.
func (h requests) GetTask(ctx context.Context, req *a2a.GetTaskRequest) (*a2a.Task, error) {
	_, x, err := h.find(ctx, req.Tenant, req.ID)
	if err != nil {
		return nil, err
	}
	task, err := h.snapshot(ctx, x)
	return task, h.protocolError(err)
}

// CancelTask implements [a2asrv.RequestHandler].
func (h requests) CancelTask(ctx context.Context, req *a2a.CancelTaskRequest) (*a2a.Task, error) {
	c, x, err := h.find(ctx, req.Tenant, req.ID)
	if err != nil {
		return nil, err
	}
	task, err := h.snapshot(ctx, x)
	if err == nil && !task.Status.State.Terminal() {
		if err = h.Runtime.Cancel(ctx, c.caller, x.ID, "the caller cancelled"); err == nil {
			task, err = h.snapshot(ctx, x)
		}
		if err == nil && task.Status.State == a2a.TaskStateCanceled {
			h.record(c, x, "CancelTask", nil, nil)
			return task, nil
		}
	}
	if err != nil {
		return nil, h.protocolError(err)
	}
	return nil, a2a.NewError(a2a.ErrTaskNotCancelable, "the task is over: "+string(task.Status.State))
}

// GetExtendedAgentCard implements [a2asrv.RequestHandler]. Unlike the public card, it is
// made from the definition of the caller's tenant.
func (h requests) GetExtendedAgentCard(ctx context.Context, req *a2a.GetExtendedAgentCardRequest) (*a2a.AgentCard, error) {
	c, err := h.callOf(ctx, req.Tenant)
	if err == nil {
		err = c.checkAgent()
	}
	if err != nil {
		return nil, err
	}
	card, err := h.card(c.base, *c.agent)
	return card, h.protocolError(err)
}

// find returns the exchange of a task that the caller began at this agent. A tenant of ""
// leaves the agent open in requests that have no path.
func (h requests) find(ctx context.Context, tenant string, id a2a.TaskID) (*call, gateway.Exchange, error) {
	c, err := h.callOf(ctx, tenant)
	if err != nil {
		return nil, gateway.Exchange{}, err
	}
	message := messageID(id)
	if message == "" {
		return nil, gateway.Exchange{}, noTask()
	}
	x, err := h.Runtime.Find(ctx, c.caller, message)
	switch {
	case errors.Is(err, gateway.ErrUnknown):
		return nil, gateway.Exchange{}, noTask()
	case err != nil:
		return nil, gateway.Exchange{}, h.protocolError(err)
	case !c.owns(x, message):
		return nil, gateway.Exchange{}, noTask()
	}
	return c, x, nil
}

// noTask is the same for all tasks that a caller cannot see.
func noTask() error { return a2a.NewError(a2a.ErrTaskNotFound, "no such task") }

// owns reports whether an exchange is a task of the call's agent, and not a message that
// continued one. Requests over gRPC may come without an agent, and mean all that the caller
// sees.
func (c *call) owns(x gateway.Exchange, message string) bool {
	if x.ID != message || continuedBy(x) != "" {
		return false
	}
	if c.visible != nil {
		return c.visible[agentPath(gateway.ExposedAgent{Swarm: x.Task.Swarm, Name: x.Agent})]
	}
	return x.Agent == c.agent.Name && x.Task.Swarm == c.agent.Swarm
}

// record records a message for the operator.
func (h requests) record(c *call, x gateway.Exchange, kind string, text []byte, err error) {
	e := gateway.Event{Caller: c.caller, Foreign: x.ID, Type: kind, Text: text, Task: x.Task.Task}
	h.Runtime.Record(e.WithOutcome(x.Duplicate, err))
}

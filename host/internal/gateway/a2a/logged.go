package a2a

import (
	"context"
	"iter"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"skep/host/internal/gateway"
)

// logged are the requests with a line in the log of messages for each. Those with a message
// have theirs from requests, which knows its task.
type logged struct{ requests }

// log records a request and returns its error. The line of one that its binding could not
// read is recordUnread's.
func (h logged) log(ctx context.Context, kind string, task a2a.TaskID, err error) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok || c.fault != nil {
		return err
	}
	c.read.Store(true)
	h.Runtime.Record(gateway.Event{Caller: c.caller, Foreign: string(task), Type: kind, Text: c.text}.WithOutcome(false, err))
	return err
}

// GetTask implements [a2asrv.RequestHandler].
func (h logged) GetTask(ctx context.Context, req *a2a.GetTaskRequest) (*a2a.Task, error) {
	task, err := h.requests.GetTask(ctx, req)
	return task, h.log(ctx, "GetTask", req.ID, err)
}

// ListTasks implements [a2asrv.RequestHandler].
func (h logged) ListTasks(ctx context.Context, req *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	list, err := h.requests.ListTasks(ctx, req)
	return list, h.log(ctx, "ListTasks", "", err)
}

// CancelTask implements [a2asrv.RequestHandler].
func (h logged) CancelTask(ctx context.Context, req *a2a.CancelTaskRequest) (*a2a.Task, error) {
	task, err := h.requests.CancelTask(ctx, req)
	if err != nil {
		err = h.log(ctx, "CancelTask", req.ID, err)
	}
	return task, err
}

// SubscribeToTask implements [a2asrv.RequestHandler].
func (h logged) SubscribeToTask(ctx context.Context, req *a2a.SubscribeToTaskRequest) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		begun := false
		for event, err := range h.requests.SubscribeToTask(ctx, req) {
			if !begun {
				begun, err = true, h.log(ctx, "SubscribeToTask", req.ID, err)
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// GetExtendedAgentCard implements [a2asrv.RequestHandler].
func (h logged) GetExtendedAgentCard(ctx context.Context, req *a2a.GetExtendedAgentCardRequest) (*a2a.AgentCard, error) {
	card, err := h.requests.GetExtendedAgentCard(ctx, req)
	return card, h.log(ctx, "GetExtendedAgentCard", "", err)
}

// CreateTaskPushConfig implements [a2asrv.RequestHandler].
func (h logged) CreateTaskPushConfig(ctx context.Context, config *a2a.PushConfig) (*a2a.PushConfig, error) {
	made, err := h.requests.CreateTaskPushConfig(ctx, config)
	return made, h.log(ctx, "CreateTaskPushNotificationConfig", config.TaskID, err)
}

// GetTaskPushConfig implements [a2asrv.RequestHandler].
func (h logged) GetTaskPushConfig(ctx context.Context, req *a2a.GetTaskPushConfigRequest) (*a2a.PushConfig, error) {
	config, err := h.requests.GetTaskPushConfig(ctx, req)
	return config, h.log(ctx, "GetTaskPushNotificationConfig", req.TaskID, err)
}

// ListTaskPushConfigs implements [a2asrv.RequestHandler].
func (h logged) ListTaskPushConfigs(ctx context.Context, req *a2a.ListTaskPushConfigRequest) (*a2a.ListTaskPushConfigResponse, error) {
	list, err := h.requests.ListTaskPushConfigs(ctx, req)
	return list, h.log(ctx, "ListTaskPushNotificationConfigs", req.TaskID, err)
}

// DeleteTaskPushConfig implements [a2asrv.RequestHandler].
func (h logged) DeleteTaskPushConfig(ctx context.Context, req *a2a.DeleteTaskPushConfigRequest) error {
	return h.log(ctx, "DeleteTaskPushNotificationConfig", req.TaskID, h.requests.DeleteTaskPushConfig(ctx, req))
}

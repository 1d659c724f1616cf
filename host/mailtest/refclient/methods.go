package refclient

import (
	"context"
	"encoding/json"
)

// Answer is what a call was answered with, as it came.
type Answer = map[string]any

// object makes a call that is answered with an object.
func (c *Client) object(ctx context.Context, method, path string, payload any) (a Answer, err error) {
	return a, c.call(ctx, method, path, payload, &a)
}

// Ping is ping.
func (c *Client) Ping(ctx context.Context) (Answer, error) { return c.object(ctx, "GET", "/", nil) }

// GetHealth is get_health.
func (c *Client) GetHealth(ctx context.Context) (Answer, error) {
	return c.object(ctx, "GET", "/health", nil)
}

// UpdateHealth is update_health.
func (c *Client) UpdateHealth(ctx context.Context, status string) (Answer, error) {
	return c.object(ctx, "POST", "/health", Object{{"status", status}})
}

// GetWhoami is get_whoami, and what login asks after it has taken a key.
func (c *Client) GetWhoami(ctx context.Context) (Answer, error) {
	return c.object(ctx, "GET", "/whoami", nil)
}

// Login is login.
func (c *Client) Login(ctx context.Context, key string) (Answer, error) {
	c.Key = key
	return c.GetWhoami(ctx)
}

// GetStatus is get_status.
func (c *Client) GetStatus(ctx context.Context) (Answer, error) {
	return c.object(ctx, "GET", "/status", nil)
}

// Post is what post_message and post_message_stream are given. A nil pointer is
// Python's None.
type Post struct {
	Body, Subject, Type string
	Entrypoint          *string
	ShowEvents          bool
	Task                *string
	Resume              *string
	Kwargs              Object
}

func orNull(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}

// payload has the eight keys, of which the stream has another in the place of
// show_events.
func (p Post) payload(stream bool) Object {
	how := Member{"show_events", p.ShowEvents}
	if stream {
		how = Member{"stream", true}
	}
	return Object{
		{"subject", p.Subject}, {"body", p.Body}, {"msg_type", p.Type}, {"entrypoint", orNull(p.Entrypoint)}, how,
		{"task_id", orNull(p.Task)}, {"resume_from", orNull(p.Resume)}, {"kwargs", append(Object{}, p.Kwargs...)},
	}
}

// PostMessage is post_message.
func (c *Client) PostMessage(ctx context.Context, p Post) (Answer, error) {
	return c.object(ctx, "POST", "/message", p.payload(false))
}

// GetSwarms is get_swarms.
func (c *Client) GetSwarms(ctx context.Context) (Answer, error) {
	return c.object(ctx, "GET", "/swarms", nil)
}

// RegisterSwarm is register_swarm; token and metadata are sent when they are
// set.
func (c *Client) RegisterSwarm(ctx context.Context, name, baseURL string, token *string, volatile bool, metadata Object) (Answer, error) {
	o := Object{{"name", name}, {"base_url", baseURL}, {"volatile", volatile}}
	if token != nil {
		o = append(o, Member{"auth_token", *token})
	}
	if metadata != nil {
		o = append(o, Member{"metadata", metadata})
	}
	return c.object(ctx, "POST", "/swarms", o)
}

// DumpSwarm is dump_swarm.
func (c *Client) DumpSwarm(ctx context.Context) (Answer, error) {
	return c.object(ctx, "GET", "/swarms/dump", nil)
}

// LoadSwarm is load_swarm_from_json.
func (c *Client) LoadSwarm(ctx context.Context, text string) (Answer, error) {
	return c.object(ctx, "POST", "/swarms/load", Object{{"json", text}})
}

// PostInterswarmMessage is post_interswarm_message: a wrapper as it is.
func (c *Client) PostInterswarmMessage(ctx context.Context, wrapper Object) (Answer, error) {
	return c.object(ctx, "POST", "/interswarm/message", wrapper)
}

// PostInterswarmResponse is post_interswarm_response: a message as it is.
func (c *Client) PostInterswarmResponse(ctx context.Context, message Object) (Answer, error) {
	return c.object(ctx, "POST", "/interswarm/response", message)
}

// SendInterswarmMessage is send_interswarm_message; more are the members that
// are set beside the two that always are.
func (c *Client) SendInterswarmMessage(ctx context.Context, body, userToken string, more Object) (Answer, error) {
	return c.object(ctx, "POST", "/interswarm/message", append(Object{{"body", body}, {"user_token", userToken}}, more...))
}

// DebugPostResponses is debug_post_responses, whose answer is JSON in a string.
func (c *Client) DebugPostResponses(ctx context.Context, input []any, tools []any, more Object) (a Answer, err error) {
	var inner string
	if err := c.call(ctx, "POST", "/responses", append(Object{{"input", input}, {"tools", tools}}, more...), &inner); err != nil {
		return nil, err
	}
	return a, json.Unmarshal([]byte(inner), &a)
}

// GetTasks is get_tasks.
func (c *Client) GetTasks(ctx context.Context) (Answer, error) {
	return c.object(ctx, "GET", "/tasks", nil)
}

// GetTask is get_task, which sends a body with GET.
func (c *Client) GetTask(ctx context.Context, id string) (Answer, error) {
	return c.object(ctx, "GET", "/task", Object{{"task_id", id}})
}

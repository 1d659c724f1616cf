package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"skep/spec/mail"
)

// Post is one message for a swarm. Empty fields leave the choice to the host.
type Post struct {
	Body    string
	Subject string
	// Type is request, broadcast or interrupt.
	Type mail.Type
	// Entrypoint is the agent that gets the message.
	Entrypoint string
	// Task is the task to start or continue.
	Task string
	// Timeout ends the task, MaxSteps limits its messages.
	Timeout  time.Duration
	MaxSteps int
	// Continue refuses to start the task: it must exist.
	Continue bool
	// Result, if set, answers what a paused task waits for, instead of bringing a
	// message: a text for the only call there is, or the JSON of an array of
	// objects with call_id and content.
	Result *string
	// Key makes a repeat of the post the same post. Empty means a new random
	// one for each call; see [NewKey].
	Key string
}

// Answer is what a post comes back with.
type Answer struct {
	Task string
	// Subject is mail.SubjectTaskComplete for an agent's answer, and another for an end
	// that the system made. It is empty when the host leaves it out.
	Subject string
	Body    string
}

// Receipt confirms that a post is durable and will be handled.
type Receipt struct {
	Task string `json:"task_id"`
	// Cursor is the event after which the post's own begin.
	Cursor int64 `json:"-"`
}

// NewKey makes an idempotency key.
func NewKey() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return mail.NewUUID(b)
}

// PostMessage posts a message and waits for its answer, as long as it takes.
// When the connection breaks or the host restarts, it waits on.
func (c *Client) PostMessage(ctx context.Context, p Post) (Answer, error) {
	k, err := newPost(p)
	if err != nil {
		return Answer{}, err
	}
	var a Answer
	err = c.retry(ctx, k.safe(), func() error {
		got, err := c.attempt(ctx, k)
		if err != nil {
			return err
		}
		a, err = readAnswer(got)
		return err
	})
	return a, err
}

func readAnswer(got answer) (Answer, error) {
	if got.status == http.StatusAccepted {
		return Answer{}, errNotYet
	}
	var body struct {
		Response *string `json:"response"`
	}
	if err := json.Unmarshal(got.body, &body); err != nil {
		return Answer{}, fmt.Errorf("POST /message: %w: %w", ErrNotMAIL, err)
	}
	if body.Response == nil {
		return Answer{}, fmt.Errorf("POST /message: %w: it has no response", ErrNotMAIL)
	}
	a := Answer{
		Task:    taskIn(got.header.Get("X-MAIL-Task-Id")),
		Subject: got.header.Get("X-MAIL-Finish-Subject"),
		Body:    *body.Response,
	}
	if a.Subject == mail.SubjectShutdownRequested {
		return a, errGoingDown
	}
	return a, nil
}

// taskIn reads a task id as a header carries it, percent-encoded.
func taskIn(text string) string {
	if id, err := url.PathUnescape(text); err == nil {
		return id
	}
	return text
}

// PostAsync posts a message and returns when it is durable.
func (c *Client) PostAsync(ctx context.Context, p Post) (Receipt, error) {
	k, err := newPost(p)
	if err != nil {
		return Receipt{}, err
	}
	k.header.Set("Prefer", "respond-async")
	var r Receipt
	header, err := c.do(ctx, k, &r)
	if err != nil {
		return Receipt{}, err
	}
	if r.Task == "" {
		return Receipt{}, fmt.Errorf("POST /message: %w: it has no task_id", ErrNotMAIL)
	}
	r.Cursor = cursorIn(header.Get("Location"))
	return r, nil
}

// newPost encodes a post. The bytes are the same on every repeat.
func newPost(p Post) (call, error) {
	if p.Key == "" {
		p.Key = NewKey()
	}
	kwargs := map[string]any{}
	if p.Timeout > 0 {
		kwargs["timeout"] = p.Timeout.Seconds()
	}
	if p.MaxSteps > 0 {
		kwargs["max_steps"] = p.MaxSteps
	}
	resume := ""
	switch {
	case p.Result != nil:
		resume, kwargs["breakpoint_tool_call_result"] = "breakpoint_tool_call", *p.Result
	case p.Continue:
		resume = "user_response"
	}
	body, err := json.Marshal(struct {
		Body       string         `json:"body"`
		Subject    string         `json:"subject,omitempty"`
		Type       mail.Type      `json:"msg_type,omitempty"`
		Entrypoint string         `json:"entrypoint,omitempty"`
		Task       string         `json:"task_id,omitempty"`
		Resume     string         `json:"resume_from,omitempty"`
		Kwargs     map[string]any `json:"kwargs,omitempty"`
	}{p.Body, p.Subject, p.Type, p.Entrypoint, p.Task, resume, kwargs})
	if err != nil {
		return call{}, fmt.Errorf("encode the post: %w", err)
	}
	header := http.Header{}
	header.Set(keyHeader, p.Key)
	return call{method: http.MethodPost, path: "/message", header: header, body: body}, nil
}

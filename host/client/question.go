package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Question is a call that waits for a person.
type Question struct {
	Tenant string `json:"tenant"`
	// Instance is whose task it is, as user:alice.
	Instance string    `json:"instance"`
	Task     string    `json:"task_id"`
	Call     string    `json:"call_id"`
	Agent    string    `json:"agent"`
	Action   string    `json:"action"`
	Since    time.Time `json:"since"`
	// Arguments are JSON, nil for a caller who may not answer.
	Arguments *string `json:"arguments"`
}

const questionsPath = "/skep/v1/questions"

// Questions returns a page of the calls that wait for people: a user's own, an admin's
// tenant's, or for operators those of all tenants or of the one that is named. After is the
// next of the page before, empty for the first; next is empty on the last.
func (c *Client) Questions(ctx context.Context, tenant, after string) (list []Question, next string, err error) {
	query := url.Values{}
	if tenant != "" {
		query.Set("tenant", tenant)
	}
	if after != "" {
		query.Set("after", after)
	}
	var page struct {
		Questions []Question `json:"questions"`
		Next      string     `json:"next"`
	}
	_, err = c.do(ctx, call{method: http.MethodGet, path: questionsPath + "?" + query.Encode()}, &page)
	return page.Questions, page.Next, err
}

// Answer answers a question with a text.
func (c *Client) Answer(ctx context.Context, q Question, text string) error {
	body, err := json.Marshal(map[string]string{"tenant": q.Tenant, "instance": q.Instance, "task_id": q.Task, "call_id": q.Call, "content": text})
	if err != nil {
		return err
	}
	var ignored json.RawMessage
	_, err = c.do(ctx, call{method: http.MethodPost, path: questionsPath + "/answer", body: body}, &ignored)
	return err
}

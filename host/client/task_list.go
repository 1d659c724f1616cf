package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// TaskQuery selects tasks. Fields that are zero select all.
type TaskQuery struct {
	// Scope is own, tenant or host; empty is own, or tenant with a Tenant.
	Scope, Tenant string
	// State is a state of [Task], Agent an entrypoint.
	State, Agent string
	// Since is when a task was created at the earliest.
	Since time.Time
	// MinMicroUSD is what calls of models have cost at least, in millionths of a dollar.
	MinMicroUSD int64
	// Order is created or cost.
	Order string
	// After is the next of the page before, empty for the first.
	After string
}

func (q TaskQuery) values(limit int) url.Values {
	v := url.Values{"limit": {strconv.Itoa(limit)}, "scope": {"own"}}
	if q.Tenant != "" {
		v.Del("scope")
	}
	for name, value := range map[string]string{
		"scope": q.Scope, "tenant": q.Tenant, "state": q.State, "agent": q.Agent, "order": q.Order, "after": q.After,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if q.MinMicroUSD > 0 {
		v.Set("cost", strconv.FormatInt(q.MinMicroUSD, 10))
	}
	return v
}

// SelectTasks returns a page of the tasks that are selected, newest first or dearest first. It
// may have less than limit, or none, although others follow; next is empty on the last.
func (c *Client) SelectTasks(ctx context.Context, q TaskQuery, limit int) (tasks []Task, next string, err error) {
	return c.taskPage(ctx, q.values(limit))
}

// TaskOf names another's task.
type TaskOf struct {
	ID string
	// Instance is whose task it is, as user:alice; empty for the caller's own.
	Instance string
	// Tenant is the tenant of the instance; empty for the caller's own.
	Tenant string
}

func (t TaskOf) path(part string, more url.Values) string {
	v := url.Values{}
	for name, list := range more {
		v[name] = list
	}
	if t.Instance != "" {
		v.Set("instance", t.Instance)
	}
	if t.Tenant != "" {
		v.Set("tenant", t.Tenant)
	}
	if len(v) == 0 {
		return taskPath(t.ID) + part
	}
	return taskPath(t.ID) + part + "?" + v.Encode()
}

// TaskShape returns another's task, without what it says.
func (c *Client) TaskShape(ctx context.Context, of TaskOf) (Task, error) {
	return c.task(ctx, of.path("", nil))
}

// CancelOf ends a task as [Client.Cancel] does.
func (c *Client) CancelOf(ctx context.Context, of TaskOf) error {
	var ignored json.RawMessage
	_, err := c.do(ctx, call{method: http.MethodPost, path: of.path("/cancel", nil), again: true}, &ignored)
	return err
}

// Mail is an event of a task's log without content: who mailed whom.
type Mail struct {
	Seq   int64     `json:"seq"`
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	// The rest is of messages only. Size is the length of subject and body in bytes.
	From      string   `json:"from,omitempty"`
	To        []string `json:"to,omitempty"`
	Recipient string   `json:"recipient,omitempty"`
	Type      string   `json:"msg_type,omitempty"`
	Tier      int      `json:"tier,omitempty"`
	Size      int      `json:"size,omitempty"`
}

// TaskMail returns a page of a task's mail behind a Seq; next is 0 on the last.
func (c *Client) TaskMail(ctx context.Context, of TaskOf, after int64) (list []Mail, next int64, err error) {
	var page struct {
		Mail []Mail `json:"mail"`
		Next int64  `json:"next"`
	}
	path := of.path("/mail", url.Values{"after": {strconv.FormatInt(after, 10)}, "limit": {"500"}})
	_, err = c.do(ctx, call{method: http.MethodGet, path: path}, &page)
	return page.Mail, page.Next, err
}

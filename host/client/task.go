package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Task is what a host shows of a task.
type Task struct {
	ID           string   `json:"task_id"`
	Owner        string   `json:"task_owner"`
	Contributors []string `json:"task_contributors"`
	Entrypoint   string   `json:"entrypoint"`
	StartTime    string   `json:"start_time"`
	// State is running, paused, completed, failed, timed_out or cancelled.
	State     string `json:"state"`
	Running   bool   `json:"is_running"`
	Completed bool   `json:"completed"`
	Usage     Usage  `json:"usage"`
	// Answer is what an ended task ended with. Only [Client.Task] gives it.
	Answer string `json:"answer"`
	// Tenant is whose task it is, in what is shown of others' tasks.
	Tenant string `json:"tenant"`
	// Instance is the role and id of the principal whose task it is.
	Instance string `json:"instance"`
	// Updated is when the task last changed, and Cursor its last event then.
	Updated string `json:"updated"`
	Cursor  int64  `json:"cursor"`
	// Finish is the subject of the message that ended or paused the task.
	Finish string `json:"finish_subject"`
	// Ended is when the task ended, empty while it runs or is paused. Only
	// [Client.Task] gives it.
	Ended string `json:"ended"`
	// Events is the task's log, oldest first. Only [Client.Record] gives it.
	Events []Event `json:"events"`
	// Raw is what the host wrote.
	Raw json.RawMessage `json:"-"`
}

// Usage is what a task has cost.
type Usage struct {
	Turns     int64
	Fuel      uint64
	CPU       time.Duration
	HostCalls int64
	// Fetches counts HTTP requests, FetchBytes their bodies and answers.
	Fetches, FetchBytes int64
	// Tokens are models' tokens, MicroUSD their cost in millionths of a dollar.
	Tokens, MicroUSD int64
}

// usageJSON is Usage on the wire.
type usageJSON struct {
	Turns     int64   `json:"turns"`
	Fuel      uint64  `json:"fuel"`
	CPUms     float64 `json:"cpu_ms"`
	HostCalls int64   `json:"host_calls"`

	Fetches    int64 `json:"fetches"`
	FetchBytes int64 `json:"fetch_bytes"`
	Tokens     int64 `json:"tokens"`
	MicroUSD   int64 `json:"micro_usd"`
}

// MarshalJSON gives the computing time in milliseconds.
func (u Usage) MarshalJSON() ([]byte, error) {
	ms := float64(u.CPU.Microseconds()) / 1e3
	return json.Marshal(usageJSON{u.Turns, u.Fuel, ms, u.HostCalls, u.Fetches, u.FetchBytes, u.Tokens, u.MicroUSD})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (u *Usage) UnmarshalJSON(raw []byte) error {
	var w usageJSON
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	*u = Usage{w.Turns, w.Fuel, spanOf(w.CPUms), w.HostCalls, w.Fetches, w.FetchBytes, w.Tokens, w.MicroUSD}
	return nil
}

// UnmarshalJSON reads an event of a task's record, whose data is a string that
// holds JSON, or the JSON itself.
func (e *Event) UnmarshalJSON(raw []byte) error {
	var w struct {
		Name string          `json:"event"`
		Data json.RawMessage `json:"data"`
		ID   json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	data := []byte(w.Data)
	var text string
	if json.Unmarshal(w.Data, &text) == nil {
		data = []byte(text)
	}
	id, _ := strconv.Unquote(string(w.ID))
	f := frame{name: w.Name, id: cmp.Or(id, string(w.ID)), data: data}
	got, err := newEvent(f)
	*e = got
	return err
}

// Task returns what there is to know of a task without its mail.
func (c *Client) Task(ctx context.Context, id string) (Task, error) {
	return c.task(ctx, taskPath(id))
}

// Record returns a task with its whole log.
func (c *Client) Record(ctx context.Context, id string) (Task, error) {
	return c.task(ctx, "/task?task_id="+url.QueryEscape(id))
}

func (c *Client) task(ctx context.Context, path string) (Task, error) {
	var raw json.RawMessage
	if _, err := c.do(ctx, call{method: http.MethodGet, path: path}, &raw); err != nil {
		return Task{}, err
	}
	return readTask(raw)
}

// Records returns all the caller's tasks with their logs, by their ids. Where
// there are many, [Client.Tasks] and [Client.Log] take less at a time.
func (c *Client) Records(ctx context.Context) (map[string]Task, error) {
	var raw map[string]json.RawMessage
	if _, err := c.do(ctx, call{method: http.MethodGet, path: "/tasks"}, &raw); err != nil {
		return nil, err
	}
	tasks := make(map[string]Task, len(raw))
	for id, one := range raw {
		t, err := readTask(one)
		if err != nil {
			return nil, err
		}
		tasks[id] = t
	}
	return tasks, nil
}

// Tasks returns the caller's tasks, newest first, at most limit of them. With
// the next of an earlier page in before it returns the page after that; next is
// empty after the last.
func (c *Client) Tasks(ctx context.Context, before string, limit int) (tasks []Task, next string, err error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if before != "" {
		query.Set("before", before)
	}
	return c.taskPage(ctx, query)
}

func (c *Client) taskPage(ctx context.Context, query url.Values) (tasks []Task, next string, err error) {
	var page struct {
		Tasks []json.RawMessage `json:"tasks"`
		Next  string            `json:"next"`
	}
	if _, err := c.do(ctx, call{method: http.MethodGet, path: tasksPath + "?" + query.Encode()}, &page); err != nil {
		return nil, "", err
	}
	for _, raw := range page.Tasks {
		t, err := readTask(raw)
		if err != nil {
			return nil, "", err
		}
		tasks = append(tasks, t)
	}
	return tasks, page.Next, nil
}

func readTask(raw json.RawMessage) (Task, error) {
	var t Task
	if err := json.Unmarshal(raw, &t); err != nil {
		return Task{}, fmt.Errorf("task: %w: %w", ErrNotMAIL, err)
	}
	t.Raw = raw
	return t, nil
}

// Started is when the task was created, or the zero time.
func (t Task) Started() time.Time {
	at, _ := time.Parse(time.RFC3339Nano, t.StartTime)
	return at
}

// Cancel ends a task. It is refused with status 404 for an unknown task and
// 409 for one that has ended.
func (c *Client) Cancel(ctx context.Context, id string) error {
	var ignored json.RawMessage
	_, err := c.do(ctx, call{method: http.MethodPost, path: taskPath(id) + "/cancel", again: true}, &ignored)
	return err
}

const tasksPath = "/skep/v1/tasks"

func taskPath(id string) string { return tasksPath + "/" + url.PathEscape(id) }

// cursorIn reads the position at which an address of an event stream begins.
func cursorIn(location string) int64 {
	u, err := url.Parse(location)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(u.Query().Get("after"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

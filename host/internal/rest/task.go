package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"skep/host/internal/swarm"
)

// taskRecord is a task as MAIL shows it (contract 1.3, GET /tasks), and beside
// that its state and what it has cost.
type taskRecord struct {
	ID           string        `json:"task_id"`
	Owner        string        `json:"task_owner"`
	Contributors []string      `json:"task_contributors"`
	Started      string        `json:"start_time"`
	Events       []loggedEvent `json:"events"`
	Running      bool          `json:"is_running"`
	Queue        []stashed     `json:"task_message_queue"`
	Remote       []string      `json:"remote_swarms"`
	Completed    bool          `json:"completed"`
	Title        *string       `json:"title"`
	State        swarm.State   `json:"state"`
	Usage        usage         `json:"usage"`
}

// usage is what a task has cost so far.
type usage struct {
	Turns     int64   `json:"turns"`
	Fuel      uint64  `json:"fuel"`
	CPU       float64 `json:"cpu_ms"`
	HostCalls int64   `json:"host_calls"`
	// Fetches counts HTTP requests, FetchBytes their bodies and answers.
	Fetches    int64 `json:"fetches"`
	FetchBytes int64 `json:"fetch_bytes"`
	// Tokens are those of models, MicroUSD what they cost in millionths of a
	// dollar.
	Tokens   int64 `json:"tokens"`
	MicroUSD int64 `json:"micro_usd"`
}

func newUsage(u swarm.Usage) usage {
	return usage{u.Turns, u.Fuel, ms(u.CPU), u.HostCalls, u.Fetches, u.FetchBytes, u.Tokens, u.MicroUSD}
}

// stashed is a message that waits for its task to go on.
type stashed swarm.Row

// MarshalJSON gives [priority, sequence, message].
func (s stashed) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{s.Tier, s.N, s.Message})
}

// record reads all there is to show of a task but its log, which is written
// as it is read; see [call.writeRecord].
func (c *call) record(id string) (taskRecord, error) {
	snap, err := c.snapshot(id)
	if err != nil {
		return taskRecord{}, err
	}
	t := snap.Task
	r := taskRecord{
		ID: id, Owner: t.Owner, Contributors: list(t.Contributors), Started: stamp(t.Created), Events: []loggedEvent{},
		Running: t.State == swarm.StateRunning, Queue: []stashed{}, Remote: []string{},
		Completed: t.State != swarm.StateRunning, State: t.State, Usage: newUsage(t.Usage),
	}
	for _, p := range t.Peers {
		r.Remote = append(r.Remote, p.Swarm)
	}
	for _, row := range snap.Rows {
		if row.Stash {
			r.Queue = append(r.Queue, stashed(row))
		}
	}
	return r, nil
}

// snapshot reads a task of the caller's.
func (c *call) snapshot(id string) (swarm.Snapshot, error) {
	snap, err := c.h.rt.Task(c.ctx(), c.task(id))
	if errors.Is(err, swarm.ErrNotFound) {
		return swarm.Snapshot{}, noTask(id)
	}
	return snap, err
}

// taskByBody is GET /task, which takes a JSON body (contract 1.3). Because some
// proxies drop the body of a GET, the id may also be in the query.
func (c *call) taskByBody() error {
	id := c.r.URL.Query().Get("task_id")
	if len(c.body) > 0 {
		o, err := parseObject(c.body, c.h.opt.MaxDepth)
		if err != nil {
			return err
		}
		if raw, ok := o.get("task_id"); ok {
			if json.Unmarshal(raw, &id) != nil {
				return badRequest("task_id must be a string")
			}
		}
	}
	if id == "" {
		return badRequest("task_id is required")
	}
	return c.replyTask(id)
}

// taskByPath is GET /tasks/{task_id}.
func (c *call) taskByPath() error { return c.replyTask(c.r.PathValue("task_id")) }

func (c *call) replyTask(id string) error {
	r, err := c.record(id)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return nil
	}
	if err := c.writeRecord(r); err != nil {
		c.abort(err)
	}
	return nil
}

// writeRecord writes a record, with the log as it is read.
func (c *call) writeRecord(r taskRecord) error {
	head, tail, _ := bytes.Cut(encode(r), []byte(`"events":[]`))
	return c.writeAround(head, tail, c.task(r.ID), true)
}

// writeAround writes a task's log between two pieces of JSON, as the member
// "events".
func (c *call) writeAround(head, tail []byte, key swarm.TaskKey, asText bool) error {
	if _, err := c.w.Write(append(head, `"events":[`...)); err != nil {
		return err
	}
	if err := c.writeLog(key, asText); err != nil {
		return err
	}
	_, err := c.w.Write(append([]byte{']'}, tail...))
	return err
}

// taskPage bounds the records that are read at once.
const taskPage = 100

// tasks is GET /tasks: every task of the caller with its whole log. It is
// written as it is read, so that a long list needs no more memory than a short
// one.
func (c *call) tasks() error {
	page, err := c.h.rt.Tasks(c.ctx(), c.instance(), time.Time{}, taskPage)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return nil
	}
	separator := "{"
	for len(page) > 0 {
		for _, t := range page {
			if err := c.writeTask(separator, t.Key.Task); err != nil {
				c.abort(err)
			}
			separator = ","
		}
		last := page[len(page)-1].Created
		if page, err = c.h.rt.Tasks(c.ctx(), c.instance(), last, taskPage); err != nil {
			c.abort(err)
		}
	}
	if separator == "{" {
		_, err = c.w.Write([]byte("{}"))
	} else {
		_, err = c.w.Write([]byte("}"))
	}
	if err != nil {
		c.abort(err)
	}
	return nil
}

// writeTask writes one member of the list.
func (c *call) writeTask(separator, id string) error {
	r, err := c.record(id)
	if err != nil {
		return err
	}
	line := append([]byte(separator), encode(id)...)
	if _, err := c.w.Write(append(line, ':')); err != nil {
		return err
	}
	return c.writeRecord(r)
}

// abort cuts an answer off that has begun, so that the caller does not take a
// part for the whole.
func (c *call) abort(err error) {
	if c.ctx().Err() == nil {
		c.h.opt.Logger.Error("answer cut off", "request_id", c.w.id, "route", c.w.route, "err", err)
	}
	panic(http.ErrAbortHandler)
}

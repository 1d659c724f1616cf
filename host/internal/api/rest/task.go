package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"skep/host/internal/swarm"
)

// taskRecord is a task as MAIL defines it for GET /tasks, with its state and
// usage.
type taskRecord struct {
	ID           string           `json:"task_id"`
	Owner        string           `json:"task_owner"`
	Contributors []string         `json:"task_contributors"`
	Started      string           `json:"start_time"`
	Events       loggedEvents     `json:"events"`
	Running      bool             `json:"is_running"`
	Queue        []stashedMessage `json:"task_message_queue"`
	Remote       []string         `json:"remote_swarms"`
	Completed    bool             `json:"completed"`
	Title        *string          `json:"title"`
	State        swarm.State      `json:"state"`
	Usage        usage            `json:"usage"`

	// cursor is the number of the last event.
	cursor int64
}

// usage is what a task has used so far.
type usage struct {
	Turns     int64   `json:"turns"`
	Fuel      uint64  `json:"fuel"`
	CPU       float64 `json:"cpu_ms"`
	HostCalls int64   `json:"host_calls"`
	// Fetches counts HTTP requests, FetchBytes their bodies and answers.
	Fetches    int64 `json:"fetches"`
	FetchBytes int64 `json:"fetch_bytes"`
	// Tokens counts tokens of models, MicroUSD their cost in millionths of a
	// dollar.
	Tokens   int64 `json:"tokens"`
	MicroUSD int64 `json:"micro_usd"`
}

func newUsage(u swarm.Usage) usage {
	return usage{u.Turns, u.Fuel, ms(u.CPU), u.HostCalls, u.Fetches, u.FetchBytes, u.Tokens, u.MicroUSD}
}

// stashedMessage is a message that waits until its task resumes.
type stashedMessage swarm.Row

// MarshalJSON writes [priority, sequence, message].
func (s stashedMessage) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{s.Tier, s.N, s.Message})
}

// readRecord reads a task without its log, which [call.writeRecord] writes while
// reading it.
func (c *call) readRecord(id string) (taskRecord, error) {
	snap, err := c.readSnapshot(id)
	if err != nil {
		return taskRecord{}, err
	}
	t := snap.Task
	r := taskRecord{
		ID: id, Owner: t.Owner, Contributors: nonNil(t.Contributors), Started: formatTime(t.Created),
		Running: t.State == swarm.StateRunning, Queue: []stashedMessage{}, Remote: []string{},
		Completed: t.State != swarm.StateRunning, State: t.State, Usage: newUsage(t.Usage),
		cursor: t.Cursor,
	}
	for _, p := range t.Peers {
		r.Remote = append(r.Remote, p.Swarm)
	}
	for _, row := range snap.Rows {
		if row.Stash {
			r.Queue = append(r.Queue, stashedMessage(row))
		}
	}
	return r, nil
}

// readSnapshot reads a task of the caller.
func (c *call) readSnapshot(id string) (swarm.Snapshot, error) {
	return c.readTask(c.taskKey(id))
}

func (c *call) readTask(key swarm.TaskKey) (swarm.Snapshot, error) {
	snap, err := c.h.tasks.Task(c.ctx(), key)
	if errors.Is(err, swarm.ErrNotFound) {
		return swarm.Snapshot{}, taskNotFound(key.Task)
	}
	return snap, err
}

// taskByBody is GET /task, which takes a JSON body. Some proxies drop the body of
// a GET, so the id may also be in the query.
func (c *call) taskByBody() error {
	id, err := c.param("task_id")
	if err != nil {
		return err
	}
	if len(c.body) > 0 {
		o, err := c.bodyObject()
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
	r, err := c.readRecord(id)
	if err != nil {
		return err
	}
	return c.writeJSON(func() error { return c.writeRecord(r) })
}

// writeRecord writes a record with its log.
func (c *call) writeRecord(r taskRecord) error {
	head, tail, _ := bytes.Cut(encode(r), []byte(`"events":[]`))
	return c.writeAround(head, tail, c.taskKey(r.ID), r.cursor, true)
}

// writeAround writes a task's log, up to the event with the number last, between two pieces
// of JSON, as the member "events".
func (c *call) writeAround(head, tail []byte, key swarm.TaskKey, last int64, asText bool) error {
	if _, err := c.w.Write(append(head, `"events":[`...)); err != nil {
		return err
	}
	if err := c.writeLog(key, last, asText); err != nil {
		return err
	}
	_, err := c.w.Write(append([]byte{']'}, tail...))
	return err
}

// taskPage bounds the tasks of one read.
const taskPage = 100

// tasks is GET /tasks: every task of the caller with its whole log. It writes
// while reading, so that a long list needs no more memory than a short one.
func (c *call) tasks() error {
	return c.eachTask("{", func(separator string, t swarm.Task) error {
		return c.writeTask(separator, t.Key.Task)
	}, func() string { return "}" })
}

// writeTask writes one member of the list.
func (c *call) writeTask(separator, id string) error {
	r, err := c.readRecord(id)
	if err != nil {
		return err
	}
	line := append([]byte(separator), encode(id)...)
	if _, err := c.w.Write(append(line, ':')); err != nil {
		return err
	}
	return c.writeRecord(r)
}

// abort breaks the connection of a partial answer, so that it does not look
// complete.
func (c *call) abort(err error) {
	if c.ctx().Err() == nil {
		c.h.opt.Logger.Error("answer cut off", "request_id", c.w.id, "route", c.w.route, "err", err)
	}
	panic(http.ErrAbortHandler)
}

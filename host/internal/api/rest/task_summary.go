package rest

import (
	"errors"
	"net/http"
	"time"

	"skep/host/internal/swarm"
)

// taskSummary is a task without what grows with its mail. Events and history have
// routes of their own.
type taskSummary struct {
	ID string `json:"task_id"`
	// Tenant is set in a list of others' tasks.
	Tenant       string      `json:"tenant,omitempty"`
	Instance     string      `json:"instance"`
	Owner        string      `json:"task_owner"`
	Contributors []string    `json:"task_contributors"`
	Entrypoint   string      `json:"entrypoint"`
	State        swarm.State `json:"state"`
	Running      bool        `json:"is_running"`
	Completed    bool        `json:"completed"`
	Started      string      `json:"start_time"`
	Updated      string      `json:"updated"`
	Deadline     *string     `json:"deadline"`
	// Steps counts the steps used; a null MaxSteps means no limit.
	Steps    int     `json:"steps"`
	MaxSteps *int    `json:"max_steps"`
	Cursor   int64   `json:"cursor"`
	Finish   *string `json:"finish_subject"`
	Usage    usage   `json:"usage"`
}

func newTaskSummary(t swarm.Task) taskSummary {
	s := taskSummary{
		ID: t.Key.Task, Instance: t.Key.Instance, Owner: t.Owner, Contributors: nonNil(t.Contributors), Entrypoint: t.Entrypoint,
		State: t.State, Running: t.State == swarm.StateRunning, Completed: t.State != swarm.StateRunning,
		Started: formatTime(t.Created), Updated: formatTime(t.Updated), Steps: t.Steps, Cursor: t.Cursor,
		Usage: newUsage(t.Usage),
	}
	if !t.Deadline.IsZero() {
		deadline := formatTime(t.Deadline)
		s.Deadline = &deadline
	}
	if t.MaxSteps > 0 {
		s.MaxSteps = &t.MaxSteps
	}
	if s.Completed {
		s.Finish = &t.Finish.Subject
	}
	return s
}

// listTasks is GET /skep/v1/tasks, newest first.
func (c *call) listTasks() error {
	limit, err := c.intParam("limit", 50, 1, 500)
	if err != nil {
		return err
	}
	if filtered, err := c.isFiltered(); filtered || err != nil {
		if err != nil {
			return err
		}
		return c.filteredTasks(int(limit))
	}
	before := time.Time{}
	text, err := c.param("before")
	if err != nil {
		return err
	}
	if text != "" {
		if before, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return badRequest("before must be an RFC 3339 date-time, such as the next of an earlier page")
		}
	}
	tasks, err := c.h.tasks.Tasks(c.ctx(), c.instanceKey(), before, int(limit)+1)
	if err != nil {
		return err
	}
	var next *string
	if len(tasks) > int(limit) {
		tasks = tasks[:limit]
		// A MAIL timestamp has fewer digits and would skip tasks.
		text := tasks[limit-1].Created.UTC().Format(time.RFC3339Nano)
		next = &text
	}
	page := []taskSummary{}
	for _, t := range tasks {
		page = append(page, newTaskSummary(t))
	}
	return c.reply(struct {
		Tasks []taskSummary `json:"tasks"`
		Next  *string       `json:"next"`
	}{page, next})
}

// showTask is GET /skep/v1/tasks/{id}.
func (c *call) showTask() error {
	snap, shown, err := c.readVisible()
	if err != nil {
		return err
	}
	answer, ended, err := c.taskEnding(snap.Task)
	if err != nil {
		return err
	}
	summary := newTaskSummary(snap.Task)
	if !shown {
		summary, answer = newTaskShape(snap.Task), nil
	}
	stash := 0
	for _, row := range snap.Rows {
		if row.Stash {
			stash++
		}
	}
	return c.reply(struct {
		taskSummary
		Waiting int     `json:"waiting"`
		Stashed int     `json:"stashed"`
		Answer  *string `json:"answer"`
		Ended   *string `json:"ended"`
	}{summary, len(snap.Rows) - stash, stash, answer, ended})
}

// taskEnding returns a task's answer and when it ended; nil for a running task. A
// paused task has an answer, which is what it waits for, and no end.
func (c *call) taskEnding(t swarm.Task) (answer, ended *string, err error) {
	if t.State == swarm.StateRunning || t.Finish.Cursor == 0 {
		return nil, nil, nil
	}
	if calls := t.Calls(); t.State == swarm.StatePaused {
		return &calls, nil, nil // more may have come than it was paused for
	}
	events, err := c.h.streams.Events(c.ctx(), t.Key, t.Finish.Cursor-1, 1)
	if err != nil {
		return nil, nil, err
	}
	if len(events) == 1 {
		if a, ok := events[0].Answer(); ok {
			if at := formatTime(events[0].Time); t.State.Ended() {
				ended = &at
			}
			return &a.Body, ended, nil
		}
	}
	return nil, nil, errors.New("the event that ended the task is missing")
}

// cancelTask is POST /skep/v1/tasks/{id}/cancel.
func (c *call) cancelTask() error {
	key, own, err := c.visibleTask()
	if err == nil {
		err = c.h.tasks.CancelTask(c.ctx(), key, c.canceller(own))
	}
	if !own && !isElsewhere(err) {
		err = c.auditAct("task.cancel", targetOf(key), err)
	}
	if err != nil {
		return err
	}
	reply(c.w, http.StatusAccepted, struct {
		Task   string      `json:"task_id"`
		Status string      `json:"status"`
		State  swarm.State `json:"state"`
	}{key.Task, "accepted", swarm.StateCancelled})
	return nil
}

// canceller names the caller to the owner of a task.
func (c *call) canceller(own bool) string {
	if own {
		return string(c.principal().Role) + " " + c.w.who.ID
	}
	return string(c.w.who.Role) + " " + c.w.who.ID
}

package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"skep/abi"
)

// Status is the state of the runtime as one principal may see it.
type Status struct {
	// Users counts the instances of role user.
	Users int
	// Ready is set when the principal's instance exists, Running when one of its tasks
	// runs.
	Ready, Running bool
}

// Status returns the status for one instance.
func (r *Runtime) Status(ctx context.Context, key InstanceKey) (Status, error) {
	if err := r.countInstances(ctx, key.swarm(), 0); err != nil {
		return Status{}, err
	}
	known, err := r.instanceExists(ctx, key)
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Status{Ready: known, Users: r.instanceCounts[key.swarm()].users}
	if in := r.instances[key]; in != nil {
		s.Running = in.running > 0
	}
	return s, err
}

// Started is the time at which the runtime was made.
func (r *Runtime) Started() time.Time { return r.started }

// Definition returns a swarm of a tenant. It must not be changed.
func (r *Runtime) Definition(tenant, swarm string) (*Definition, bool) {
	return r.definition(tenant, swarm)
}

// Task returns a task's record and its rows.
func (r *Runtime) Task(ctx context.Context, key TaskKey) (Snapshot, error) {
	snap, err := r.store.LoadQueue(ctx, key)
	if err != nil {
		return Snapshot{}, fmt.Errorf("task '%s': %w", key.Task, err)
	}
	return snap, nil
}

// IsOpenRequest reports whether a request of a task has no answer. A running task is in
// memory: nothing is read for it.
func (r *Runtime) IsOpenRequest(ctx context.Context, key TaskKey, id string) (bool, error) {
	t, err := r.acquireExisting(ctx, key)
	if err != nil {
		return false, err
	}
	defer r.releaseTask(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.rec.Requests, func(open OpenRequest) bool { return open.ID == id }), nil
}

// Tasks lists the tasks of an instance, newest first.
func (r *Runtime) Tasks(ctx context.Context, key InstanceKey, before time.Time, limit int) ([]Task, error) {
	return r.store.Tasks(ctx, key, before, limit)
}

// TaskBlob returns a blob that an agent of the task has put, or that a message brought to
// it, else ErrNotFound.
func (r *Runtime) TaskBlob(ctx context.Context, key TaskKey, id BlobID) ([]byte, error) {
	return r.store.TaskBlob(ctx, key, id)
}

// Events returns a page of a task's log.
func (r *Runtime) Events(ctx context.Context, key TaskKey, after int64, limit int) ([]Event, error) {
	return r.store.Events(ctx, key, after, limit)
}

// History returns a page of an agent's history.
func (r *Runtime) History(ctx context.Context, key TaskKey, agent string, after int64, limit int) ([]abi.HistoryEntry, error) {
	return r.store.History(ctx, key, agent, after, limit)
}

// Turns returns summaries of a task's recorded turns with N > after, in the order of N:
// at most limit of them, and fewer when their records are large. more reports whether
// others follow.
func (r *Runtime) Turns(ctx context.Context, key TaskKey, after int64, limit int) (page []TurnSummary, more bool, err error) {
	records, err := r.store.Records(ctx, key, after, limit)
	if err != nil {
		return nil, false, err
	}
	read := 0
	for _, rec := range records {
		if rec.End == nil {
			if rec, err = r.store.Record(ctx, key, rec.N); err != nil {
				return nil, false, err
			}
		}
		page = append(page, summarize(rec))
		if read += rec.size(); read > PageBytes {
			break
		}
	}
	if len(page) == 0 {
		return nil, false, nil
	}
	rest, err := r.store.Records(ctx, key, page[len(page)-1].N, 1)
	return page, len(rest) > 0, err
}

// readAnswer reads the event that answers a post.
func (r *Runtime) readAnswer(ctx context.Context, key TaskKey, cursor int64) (Answer, error) {
	events, err := r.store.Events(ctx, key, cursor-1, 1)
	if err != nil {
		return Answer{}, err
	}
	if len(events) == 0 || events[0].Seq != cursor {
		return Answer{}, fmt.Errorf("task '%s': the event %d that answers it is missing", key.Task, cursor)
	}
	return answerIn(key, events[0])
}

// answerIn returns the answer in an event of a task.
func answerIn(key TaskKey, e Event) (Answer, error) {
	a, ok := e.ExchangeAnswer()
	if !ok {
		return Answer{}, fmt.Errorf("task '%s': event %d is no answer", key.Task, e.Seq)
	}
	return a, nil
}

// Answer returns the answer in a task_complete or task_error event.
func (e Event) Answer() (Answer, bool) {
	if e.Name != "task_complete" && e.Name != "task_error" {
		return Answer{}, false
	}
	var extra struct {
		Response string `json:"response"`
		Subject  string `json:"subject"`
		State    State  `json:"state"`
		Caller   string `json:"caller"`
	}
	if json.Unmarshal(e.Extra, &extra) != nil {
		return Answer{}, false
	}
	return Answer{State: extra.State, Subject: extra.Subject, Body: extra.Response, Caller: extra.Caller, Cursor: e.Seq, At: e.Time}, true
}

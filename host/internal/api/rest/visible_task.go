package rest

import (
	"cmp"
	"strings"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
)

// visibleTask returns the key of the task in the path: the caller's, or another's that the
// query names with instance and tenant. Of another's task a caller sees the shape: admins in
// their tenant, operators everywhere.
func (c *call) visibleTask() (key swarm.TaskKey, own bool, err error) {
	key = c.taskKey(c.r.PathValue("task_id"))
	mine := key.InstanceKey
	if key.Tenant, err = c.requestedTenant(); err != nil {
		return key, false, err
	}
	instance, err := c.param("instance")
	if err != nil {
		return key, false, err
	}
	if key.Instance = cmp.Or(instance, key.Instance); key.InstanceKey == mine {
		return key, true, nil
	}
	if c.w.who.Role == auth.User {
		return key, false, denied("only admins and operators see tasks of others", "asked for instance "+truncate(instance))
	}
	return key, false, nil
}

// readVisible reads the task in the path. shown is set if the caller sees what is said there.
func (c *call) readVisible() (snap swarm.Snapshot, shown bool, err error) {
	key, shown, err := c.visibleTask()
	if err == nil {
		snap, err = c.readTask(key)
	}
	if err == nil && !shown {
		shown, err = c.checkContent(snap.Task)
	}
	return snap, shown, err
}

// taskStates are the states that a list may be of.
var taskStates = []swarm.State{
	swarm.StateRunning, swarm.StatePaused, swarm.StateCompleted, swarm.StateFailed, swarm.StateTimedOut, swarm.StateCancelled,
}

// taskScope reads which tasks are listed: the caller's own, a tenant's, or those of the host, of one
// tenant where the query names it.
func (c *call) taskScope() (within swarm.InstanceKey, own bool, err error) {
	scope, err := c.param("scope")
	if err != nil {
		return within, false, err
	}
	tenant, err := c.requestedTenant()
	if err != nil {
		return within, false, err
	}
	if scope == "" && tenant != c.instanceKey().Tenant {
		scope = "tenant"
	}
	within = c.instanceKey()
	switch role := c.w.who.Role; {
	case scope == "", scope == "own":
		return within, true, nil
	case scope == "tenant" && role == auth.User:
		return within, false, denied("only admins and operators list tasks of others", "asked for scope tenant")
	case scope == "tenant":
		return swarm.InstanceKey{Tenant: tenant, Swarm: within.Swarm}, false, nil
	case scope == "host" && role != auth.Operator:
		return within, false, denied("only operators list tasks of all tenants", "asked for scope host")
	case scope == "host":
		named, err := c.param("tenant")
		return swarm.InstanceKey{Tenant: named, Swarm: within.Swarm}, false, err
	}
	return within, false, badRequest("scope must be own, tenant or host")
}

// taskFilter reads which tasks are listed. own is set for the caller's own.
func (c *call) taskFilter() (f swarm.TaskFilter, own bool, err error) {
	if f.InstanceKey, own, err = c.taskScope(); err != nil {
		return f, own, err
	}
	text := map[string]string{}
	for _, name := range []string{"state", "agent", "since", "order"} {
		if text[name], err = c.param(name); err != nil {
			return f, own, err
		}
	}
	if f.MinMicroUSD, err = c.intParam("cost", 0, 0, maxCursor); err != nil {
		return f, own, err
	}
	if f.State, err = parseState(text["state"]); err != nil {
		return f, own, err
	}
	if text["since"] != "" {
		if f.Since, err = time.Parse(time.RFC3339Nano, text["since"]); err != nil {
			return f, own, badRequest("since must be an RFC 3339 date-time")
		}
	}
	f.Agent = text["agent"]
	switch order := text["order"]; order {
	case "", "created", "cost":
		f.ByCost = order == "cost" || order == "" && f.MinMicroUSD > 0
	default:
		return f, own, badRequest("order must be created or cost")
	}
	return f, own, nil
}

func parseState(text string) (swarm.State, error) {
	if text == "" {
		return "", nil
	}
	var names []string
	for _, s := range taskStates {
		if string(s) == text {
			return s, nil
		}
		names = append(names, string(s))
	}
	return "", badRequest("state must be one of %s", strings.Join(names, ", "))
}

// newTaskShape is the summary of another's task, without what it says.
func newTaskShape(t swarm.Task) taskSummary {
	s := newTaskSummary(t)
	s.Tenant, s.Finish = t.Key.Tenant, nil
	return s
}

// isFiltered reports whether a list is of more or less than all of the caller's own tasks.
func (c *call) isFiltered() (bool, error) {
	filtered := false
	for _, name := range []string{"scope", "tenant", "state", "agent", "since", "cost", "order", "after"} {
		value, err := c.param(name)
		if err != nil {
			return false, err
		}
		filtered = filtered || value != ""
	}
	return filtered, nil
}

// filteredTasks answers a list with filters from the store, which has the tasks of all hosts
// that share it.
func (c *call) filteredTasks(limit int) error {
	f, own, err := c.taskFilter()
	if err != nil {
		return err
	}
	if before, err := c.param("before"); err != nil || before != "" {
		return cmp.Or(err, error(badRequest("before is for a list without filters; one with filters goes on with after, the next of an earlier page")))
	}
	after, err := c.param("after")
	if err != nil {
		return err
	}
	tasks, next, err := c.h.tasks.ListTasks(c.ctx(), f, after, limit)
	if err != nil {
		return err
	}
	page := []taskSummary{}
	for _, t := range tasks {
		if own {
			page = append(page, newTaskSummary(t))
		} else {
			page = append(page, newTaskShape(t))
		}
	}
	return c.reply(struct {
		Tasks     []taskSummary `json:"tasks"`
		Next      *string       `json:"next"`
		SpeaksFor string        `json:"speaks_for"`
	}{page, textOrNull(next), "store"})
}

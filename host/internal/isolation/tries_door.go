package isolation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"skep/host/client"
	"skep/host/internal/definition/config"
)

// doorTries go through every route that names a task or a tenant.
func doorTries() []try {
	all := append(taskTries("user"), taskTries("admin")...) // before there is a task of that id
	return append(all, []try{
		{"list", "the tasks of another tenant in a list", tryList},
		{"idempotency", "an idempotency key that another tenant has used", tryIdempotency},
		{"same-task", "a new task under the id of another tenant's", trySameTask},
		{"forged-tenant", "headers and fields that name another tenant", tryForgedTenant},
		{"forged-owner", "an id that would read as another tenant's owner string", tryForgedOwner},
		{"status", "the number of another tenant's users", tryStatus},
		{"health", "the health of the host, set by an admin of one tenant", tryHealth},
	}...)
}

// taskTries ask for the victim's tasks by their ids.
func taskTries(role string) []try {
	var all []try
	for name, ask := range map[string]func(context.Context, *client.Client, string) error{
		"task":   func(ctx context.Context, c *client.Client, id string) error { _, err := c.Task(ctx, id); return err },
		"record": func(ctx context.Context, c *client.Client, id string) error { _, err := c.Record(ctx, id); return err },
		"history": func(ctx context.Context, c *client.Client, id string) error {
			_, err := c.History(ctx, id, "agent", 0, 0)
			return err
		},
		"events": events,
		"turns": func(ctx context.Context, c *client.Client, id string) (last error) {
			for _, err := range c.Turns(ctx, id, 0) {
				last = err
			}
			return last
		},
		"cancel": func(ctx context.Context, c *client.Client, id string) error { return c.Cancel(ctx, id) },
		"continue": func(ctx context.Context, c *client.Client, id string) error {
			_, err := c.PostMessage(ctx, client.Post{Task: id, Continue: true, Body: "x"})
			return err
		},
	} {
		all = append(all, try{name + "-" + role, name + " of another tenant's task, by its id, as " + role, func(ctx context.Context, x *trial) error {
			c := x.hostile
			if role == "admin" {
				c = x.boss
			}
			return errors.Join(refused(ask(ctx, c, endedTask), http.StatusNotFound), refused(ask(ctx, c, waitingTask), http.StatusNotFound))
		}})
	}
	slices.SortFunc(all, func(a, b try) int { return strings.Compare(a.name, b.name) })
	return all
}

func events(ctx context.Context, c *client.Client, id string) error {
	for _, err := range c.Stream(ctx, id, 0) {
		return err
	}
	return nil
}

// refused turns an answer around: only a refusal with this status is right.
func refused(err error, status int) error {
	var e *client.Error
	switch {
	case err == nil:
		return fmt.Errorf("it was answered, want status %d", status)
	case !errors.As(err, &e) || e.Status != status:
		return fmt.Errorf("want status %d: %w", status, err)
	}
	return nil
}

func tryList(ctx context.Context, x *trial) error {
	for _, c := range []*client.Client{x.hostile, x.boss} {
		tasks, _, err := c.Tasks(ctx, "", 100)
		if err != nil {
			return err
		}
		for _, t := range tasks {
			if t.ID == waitingTask || strings.Contains(t.Owner, "victim") {
				return fmt.Errorf("the list has the task %s of %s", t.ID, t.Owner)
			}
		}
	}
	return nil
}

func tryIdempotency(ctx context.Context, x *trial) error {
	answer, err := x.hostile.PostMessage(ctx, client.Post{Key: sharedKey, Body: "mine"})
	if err != nil {
		return err
	}
	if answer.Task == endedTask || !strings.Contains(answer.Body, "mine") {
		return fmt.Errorf("the key led to task %s: %s", answer.Task, answer.Body)
	}
	return nil
}

func trySameTask(ctx context.Context, x *trial) error {
	answer, err := x.hostile.PostMessage(ctx, client.Post{Task: waitingTask, Body: "mine"})
	if err != nil {
		return err
	}
	own, err := x.hostile.Task(ctx, waitingTask)
	if err != nil {
		return err
	}
	if !strings.Contains(answer.Body, "mine") || own.Owner != "user:hostile/alice@isolation" {
		return fmt.Errorf("task %s of %s answered: %s", own.ID, own.Owner, answer.Body)
	}
	return x.untouched(ctx)
}

// untouched checks that the victim's waiting task is as it was left.
func (x *trial) untouched(ctx context.Context) error {
	t, err := x.victim.Record(ctx, waitingTask)
	if err != nil {
		return err
	}
	if t.State != "running" || t.Owner != "user:victim/alice@isolation" || timerOf(t) != x.timer {
		return fmt.Errorf("the task of another tenant is now %s, of %s", t.State, t.Owner)
	}
	for _, e := range t.Events {
		if e.Name == "timer_cancelled" || strings.Contains(string(e.Extra), "hostile") {
			return fmt.Errorf("the log of another tenant's task has %s: %s", e.Name, e.Extra)
		}
	}
	return nil
}

func tryForgedTenant(ctx context.Context, x *trial) error {
	for _, q := range []struct {
		method, path, body string
		status             int
	}{
		// Operators may name a tenant: others are refused, whether or not the task is there.
		{http.MethodGet, "/skep/v1/tasks/" + endedTask + "?tenant=victim&instance=user:victim/alice", "", http.StatusUnauthorized},
		{http.MethodGet, "/skep/v1/tasks/nothing?tenant=victim&instance=user:victim/alice", "", http.StatusUnauthorized},
		{http.MethodGet, "/skep/v1/tasks/victim%2F" + endedTask, "", http.StatusNotFound},
		{http.MethodGet, "/skep/v1/tasks/..%2Fvictim%2F" + endedTask, "", http.StatusNotFound},
		{http.MethodPost, "/message", `{"body":"x","resume_from":"user_response","task_id":"` + endedTask + `",` +
			`"tenant":"victim","principal":"user:victim/alice","instance":"user:alice","task_owner":"user:victim/alice@isolation"}`, http.StatusNotFound},
	} {
		status, body, err := x.send(ctx, q.method, q.path, q.body)
		if err != nil {
			return err
		}
		if status != q.status {
			return fmt.Errorf("%s %s was answered with %d: %s", q.method, q.path, status, body)
		}
	}
	return nil
}

// send makes a request with the hostile key and headers that lie.
func (x *trial) send(ctx context.Context, method, path, body string) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, x.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+x.keys.hostile)
	for _, name := range []string{"X-Tenant", "X-Skep-Tenant", "X-Forwarded-User", "X-Principal"} {
		r.Header.Set(name, "victim")
	}
	rsp, err := x.heard.client().Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = rsp.Body.Close() }()
	answer, err = io.ReadAll(rsp.Body)
	return rsp.StatusCode, bytes.TrimSpace(answer), err
}

func tryForgedOwner(_ context.Context, x *trial) error {
	for _, id := range []string{"victim/alice", "victim%2Falice/", "alice@isolation", "a:b"} {
		file := swarmFile(x.keys) + fmt.Sprintf("[[auth.keys]]\nid = %q\nrole = \"user\"\nkey = %q\n", id, secret())
		if _, err := config.Parse("isolation.toml", []byte(file), ".", config.Options{}); err == nil || !strings.Contains(err.Error(), id) {
			return fmt.Errorf("the id %q is not refused", id)
		}
	}
	return nil
}

func tryStatus(ctx context.Context, x *trial) error {
	for _, c := range []*client.Client{x.hostile, x.boss} {
		s, err := c.Status(ctx)
		if err != nil {
			return err
		}
		if s.ActiveUsers != 1 {
			return fmt.Errorf("a tenant of one user sees %d", s.ActiveUsers)
		}
	}
	return nil
}

func tryHealth(ctx context.Context, x *trial) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url+"/health", strings.NewReader(`{"status":"broken"}`))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+x.keys.boss)
	rsp, err := x.heard.client().Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = rsp.Body.Close() }()
	if rsp.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("it was answered with %d", rsp.StatusCode)
	}
	return nil
}

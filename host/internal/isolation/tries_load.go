package isolation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"skep/host/client"
)

// loadTries use up what a tenant has, or more, while the other works.
func loadTries() []try {
	return []try{
		{"quota-tasks", "using up all tasks while another tenant works", tryTasks},
		{"quota-queue", "sending more than the tenant may have waiting", tryQueue},
		{"burn", "turns that never end, while another tenant works", tryBurn},
		{"crash", "traps, endless recursion and memory without end", tryCrash},
	}
}

// works checks that the victim gets its answer.
func (x *trial) works(ctx context.Context) error {
	texts, err := play(ctx, x.victim, client.Post{}, call{"kv.get", obj{"key": kvName, "scope": "instance"}})
	if err != nil {
		return fmt.Errorf("another tenant cannot work: %w", err)
	}
	if texts[0] != x.marker {
		return fmt.Errorf("another tenant reads %q", texts[0])
	}
	return nil
}

// idle ends all tasks of the hostile tenant that run.
func (x *trial) idle(ctx context.Context) error {
	tasks, _, err := x.hostile.Tasks(ctx, "", 100)
	for _, t := range tasks {
		if err == nil && t.Running {
			err = x.hostile.Cancel(ctx, t.ID)
		}
	}
	return err
}

func tryTasks(ctx context.Context, x *trial) error {
	accepted := 0
	var err error
	for err == nil && accepted <= hostileTasks {
		if err = wait(ctx, x.hostile, "", "x"); err == nil {
			accepted++
		}
	}
	if accepted != hostileTasks {
		return fmt.Errorf("%d tasks were accepted, the quota is %d; the last was told: %v", accepted, hostileTasks, err)
	}
	wrong := refused(err, http.StatusTooManyRequests)
	if wrong == nil && !strings.Contains(err.Error(), "[tenants.hostile] tasks") {
		wrong = fmt.Errorf("the refusal names no line: %w", err)
	}
	return errors.Join(wrong, x.works(ctx), x.idle(ctx))
}

func tryQueue(ctx context.Context, x *trial) error {
	var calls []call
	for range 2 * hostileQueue {
		calls = append(calls, call{"send_request", obj{"target": "helper", "subject": "s", "body": "b"}})
	}
	texts, err := play(ctx, x.hostile, client.Post{}, calls...)
	if err != nil {
		return err
	}
	last := texts[len(texts)-1]
	if !strings.HasPrefix(last, "ERROR LIMIT") || !strings.Contains(last, "[tenants.hostile] queue") {
		return fmt.Errorf("the last of %d messages: %s", len(texts), last)
	}
	return x.works(ctx)
}

func tryBurn(ctx context.Context, x *trial) error {
	for range hostileTasks {
		if _, err := x.hostile.PostAsync(ctx, client.Post{Body: script(call{"loop", obj{}})}); err != nil {
			return err
		}
	}
	return errors.Join(x.works(ctx), x.idle(ctx))
}

func tryCrash(ctx context.Context, x *trial) error {
	for _, c := range []call{{"trap", obj{}}, {"recurse", obj{}}, {"alloc", obj{"mib": 4096}}} {
		answer, err := x.hostile.PostMessage(ctx, client.Post{Body: script(c)})
		if err != nil {
			return err
		}
		if !strings.Contains(answer.Subject, "::") || !strings.Contains(answer.Body, "agent") {
			return fmt.Errorf("%s ended with [%s] %s", c.name, answer.Subject, answer.Body)
		}
		if err := x.works(ctx); err != nil {
			return err
		}
	}
	return nil
}

// endTries look at what all others have left.
func endTries() []try {
	return []try{
		{"victim", "the tasks of the other tenant, after all that", func(ctx context.Context, x *trial) error {
			return errors.Join(x.untouched(ctx), x.works(ctx))
		}},
		{"heard", "anything that only the other tenant knows, in all that the host has said", func(_ context.Context, x *trial) error {
			if x.heard.has(x.marker) {
				return errors.New("the hostile tenant was told what it must not know")
			}
			return nil
		}},
	}
}

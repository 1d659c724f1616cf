package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/client"
)

const taskWatchHelp = `Watch shows what a task does while it does it, until it ends: its turns and what they
cost, who mails whom, questions to people, limits. It shows the shape and no content;
"skep task show" and "skep task events" have what was said.

A connection that breaks is opened again, and a task that another host has taken over is
followed there. The exit code is that of the task's end: 0 completed, 1 failed or
cancelled, 124 timed out. With -o json each line is an event of the feed.`

func (a *app) taskWatchCommand() *cobra.Command {
	var of client.TaskOf
	cmd := &cobra.Command{
		Use: "watch ID", Short: "Follow a task until it ends", Args: exactArguments("the ID of a task"), Long: taskWatchHelp,
		Example: "  skep task watch 3b0e4c1a-…\n  skep task watch 3b0e4c1a-… --tenant acme --owner user:bob\n" +
			"  skep task watch 3b0e4c1a-… -o json | jq -r 'select(.kind==\"turn\").agent'",
	}
	ownerFlags(cmd, &of)
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		of.ID = args[0]
		return a.watchTask(cmd.Context(), c, of)
	})
	return cmd
}

// taskEnds are the states of tasks that have ended, with their exit codes.
var taskEnds = map[string]int{"completed": exitOK, "failed": exitFailed, "cancelled": exitFailed, "timed_out": exitTimeout}

// watchTask prints the events of a task until it ends. After a reset the task is read: it may
// have ended before.
func (a *app) watchTask(ctx context.Context, c *client.Client, of client.TaskOf) error {
	t, err := c.TaskShape(ctx, of)
	if err != nil {
		return a.explainTaskNotFound(err, of)
	}
	of.Instance, of.Tenant = t.Instance, t.Tenant
	for e, err := range c.Pulse(ctx, client.PulseQuery{Task: of.ID, Owner: t.Instance, Tenant: of.Tenant}) {
		if err != nil {
			return err
		}
		if e.Kind == client.PulseReset {
			if e, err = a.stateAfterReset(ctx, c, of, e); err != nil {
				return err
			}
		}
		if err := a.printPulse(e); err != nil {
			return err
		}
		if code, over := taskEnds[e.State]; e.Kind == "task" && over {
			if code == exitOK {
				return nil
			}
			return reported(code)
		}
	}
	return errors.New("the feed has ended")
}

// stateAfterReset notes what was missed and returns the task's state as an event.
func (a *app) stateAfterReset(ctx context.Context, c *client.Client, of client.TaskOf, reset client.PulseEvent) (client.PulseEvent, error) {
	if reset.Missed > 0 {
		a.notef("the feed was too fast, or away for too long: %s of the host missed", plural(int64(min(reset.Missed, 1<<53)), "event"))
	}
	t, err := c.TaskShape(ctx, of)
	if err != nil {
		return client.PulseEvent{}, err
	}
	e := client.PulseEvent{Kind: "task", Time: wireTime(t.Updated), Tenant: t.Tenant, Instance: t.Instance, Task: t.ID, State: t.State}
	if _, over := taskEnds[t.State]; over {
		e.Usage = &client.PulseUsage{Usage: t.Usage}
	}
	fields := map[string]any{"kind": e.Kind, "time": e.Time, "instance": e.Instance, "task_id": e.Task, "state": e.State, "usage": t.Usage}
	if e.Tenant != "" {
		fields["tenant"] = e.Tenant
	}
	e.Raw, err = json.Marshal(fields)
	return e, err
}

// printPulse prints an event of the feed on a line.
func (a *app) printPulse(e client.PulseEvent) error {
	if a.json() {
		return a.printf("%s\n", e.Raw)
	}
	return a.printf("%s  %s  %s\n", e.Time.Local().Format("15:04:05.000"), a.dataStyle().dim(pad(inLine(e.Kind), len("quarantine"))), pulseText(a.dataStyle(), e))
}

// pulseText describes an event in a line.
func pulseText(st style, e client.PulseEvent) string {
	var parts []string
	switch e.Kind {
	case "task":
		parts = append(parts, st.state(inLine(e.State), e.State))
	case "mail", "outbox":
		parts = append(parts, mailText(e))
	case "question":
		parts = append(parts, inLine(e.Agent)+" "+inLine(e.Action)+" "+inLine(e.Call)+" "+inLine(e.State))
	case "refusal", "reload", "audit":
		parts = append(parts, inLine(strings.TrimSpace(e.Act+" "+e.Outcome+" "+e.Target)))
		if e.Cause != "" {
			parts = append(parts, inLine(e.Cause))
		}
		if e.Principal != "" {
			parts = append(parts, inLine(e.Principal))
		}
	default:
		parts = append(parts, fmt.Sprintf("%s %d %s", inLine(e.Agent), e.Turn, inLine(e.State)))
	}
	if e.Model != "" {
		parts = append(parts, inLine("model "+e.Model+": "+e.ModelCause))
	}
	if e.Key != "" {
		parts = append(parts, inLine(e.Key))
	}
	return strings.Join(append(parts, pulseUsageText(e)...), " · ")
}

func mailText(e client.PulseEvent) string {
	from, to := e.From, e.To
	if e.FromSwarm != "" {
		from += "@" + e.FromSwarm
	}
	if e.Peer != "" {
		to += "@" + e.Peer
	}
	text := inLine(from) + " → " + inLine(to) + " " + inLine(e.Type) + " " + quantity(uint64(max(0, e.Size))) + "B"
	if e.State != "" {
		text += " " + inLine(e.State)
	}
	return text
}

// pulseUsageText lists what an event's turn or task has cost.
func pulseUsageText(e client.PulseEvent) (parts []string) {
	u := e.Usage
	if u == nil {
		return nil
	}
	if u.WallMS > 0 {
		parts = append(parts, "in "+span(milliseconds(u.WallMS)))
	}
	if e.Kind == "task" {
		parts = append(parts, usageText(u.Usage))
	} else {
		parts = append(parts, quantity(u.Fuel)+" fuel", "waited "+span(milliseconds(u.QueuedMS)))
	}
	if u.Tokens > 0 {
		parts = append(parts, modelText(u.Tokens, u.MicroUSD))
	}
	return parts
}

func milliseconds(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

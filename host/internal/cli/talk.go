package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"skep/host/client"
	"skep/spec/mail"
)

// overtime is how much longer than a task's time its answer is waited for.
const overtime = 10 * time.Second

var errOvertime = errors.New("the host did not end the task in time")

// talk is a post from the command line.
type talk struct {
	client *client.Client
	post   client.Post
	// names are the swarm's agents, as far as they are known.
	names []string
	// kept says what becomes of a task that nobody waits for any more. Its %s
	// is the task.
	kept string
	// settled is called when there is an answer, or will be none.
	settled func()
	// lasts says that the host stays, so that a paused task can be resumed.
	lasts bool
	// gone says that a task's data is removed with the host.
	gone bool
}

// exchange posts a message, shows the mail, and prints the answer.
func (a *app) exchange(ctx context.Context, t talk) error {
	if t.post.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.post.Timeout+overtime, errOvertime)
		defer cancel()
	}
	x, still := a.shown(t)
	defer still()
	begun := time.Now()
	out, err := x.run(ctx)
	still()
	if t.settled != nil {
		t.settled()
	}
	if err != nil {
		return t.broken(err, x.task)
	}
	if !a.json() {
		a.notef("\n  %s", a.noteStyle().dim(summary(out, len(x.messages), time.Since(begun))))
	}
	if state, _ := end(out); state == statePaused {
		return a.paused(t, out, x.messages)
	}
	return a.finish(out, x.messages)
}

// shown is the exchange of a post whose mail a person sees as it flows. Nothing
// moves any more once still has returned.
func (a *app) shown(t talk) (x *exchange, still func()) {
	st := a.noteStyle()
	view := newMailview(a.env.Stderr, st, a.env.Width, append(t.names, "you")...)
	view.live = a.env.StderrTerminal && a.env.Width >= minWide && a.env.get("TERM") != "dumb"
	still = a.watching(view)
	x = &exchange{client: t.client, post: t.post, answered: func() { a.answered.Store(true) }}
	x.accepted = func(id string) {
		if !a.json() {
			a.notef("%s %s  %s\n", st.dim("task"), st.bold(inLine(id)), st.dim(t.client.URL()))
		}
	}
	x.event = func(e client.Event) {
		if !a.json() {
			view.event(e)
		}
	}
	x.missed = func(err error) {
		still()
		a.notef("skep: the mail cannot be shown any more: %s", below(printable(err.Error()), noteIndent))
	}
	return x, still
}

// paused prints what a task waits for, and how it goes on.
func (a *app) paused(t talk, out outcome, messages []mail.Message) error {
	resume := "skep task resume " + argument(out.answer.Task) + " --result TEXT"
	switch {
	case t.gone && a.json():
		if err := a.finish(out, messages); err != nil {
			return err
		}
		return reported(exitFailed)
	case t.gone:
		return failf(exitFailed, "the task waits for a person, and its data is gone with this run: %s", printable(out.answer.Body)).help(
			"run it with --data DIR, or post it to a host with `skep serve` and `skep send`; then `%s` answers", resume)
	case a.json():
	case t.lasts:
		a.notef("  it waits for an answer: `%s`", a.sameSwarm(resume))
	default:
		a.notef("  it waits for an answer: start `%s`, then `%s`", a.sameSwarm("skep serve"), a.sameSwarm(resume))
	}
	return a.finish(out, messages)
}

// broken explains an exchange that came to no answer.
func (t talk) broken(err error, task string) error {
	f := explain(err)
	if errors.Is(err, errOvertime) {
		f.code = exitTimeout
	}
	if task != "" && t.kept != "" {
		f.hint = strings.ReplaceAll(t.kept, "%s", inLine(task))
	}
	return f
}

// summary gives what a task has come to in one line.
func summary(out outcome, messages int, took time.Duration) string {
	parts := []string{endName(out) + " in " + span(took), plural(int64(messages), "message")}
	if u := out.record.Usage; u.Turns > 0 && out.continued {
		parts = append(parts, "whole task: "+usageText(u))
	} else if u.Turns > 0 {
		parts = append(parts, usageText(u))
	}
	return strings.Join(parts, " · ")
}

// usage is nil when the host did not tell it.
func (o outcome) usage() *client.Usage {
	if o.record.ID == "" {
		return nil
	}
	return &o.record.Usage
}

func usageText(u client.Usage) string {
	return fmt.Sprintf("%s · %s fuel · %s cpu", plural(u.Turns, "turn"), quantity(u.Fuel), span(u.CPU))
}

// statePaused is the state of a task that waits for people.
const statePaused = "paused"

// endings tells what a system's completion means.
var endings = map[string]struct {
	state string
	code  int
}{
	mail.SubjectTaskComplete:       {"completed", exitOK},
	mail.SubjectBreakpointToolCall: {statePaused, exitOK},
	mail.SubjectTaskTimeout:        {"timed_out", exitTimeout},
	mail.SubjectTaskCancelled:      {"cancelled", exitFailed},
}

// end gives the state a post has come to, and the exit code for it.
func end(out outcome) (state string, code int) {
	if e, ok := endings[out.answer.Subject]; ok {
		return e.state, e.code
	}
	if out.answer.Subject == "" && out.record.State != "" {
		// The host names no subject: what the task has come to must do.
		for _, e := range endings {
			if e.state == out.record.State {
				return e.state, e.code
			}
		}
	}
	return "failed", exitFailed
}

func endName(out outcome) string {
	state, _ := end(out)
	return strings.ReplaceAll(state, "_", " ")
}

// finish prints the answer and chooses the exit code.
func (a *app) finish(out outcome, messages []mail.Message) error {
	state, code := end(out)
	if a.json() {
		if messages == nil {
			messages = []mail.Message{}
		}
		err := a.printJSON(struct {
			Task     string         `json:"task_id"`
			State    string         `json:"state"`
			Answer   string         `json:"answer"`
			Messages []mail.Message `json:"messages"`
			Usage    *client.Usage  `json:"usage,omitempty"`
		}{out.answer.Task, state, out.answer.Body, messages, out.usage()})
		if err != nil || code == exitOK {
			return err
		}
		return reported(code)
	}
	if code != exitOK {
		f := failf(code, "the task %s: %s", ended(state), out.answer.Body)
		if code == exitTimeout {
			f.hint = "--timeout gives a task more time, as in --timeout 30m"
		}
		return f
	}
	if a.env.StderrTerminal && a.env.StdoutTerminal {
		a.notef("")
	}
	return a.print(out.answer.Body)
}

func ended(state string) string {
	switch state {
	case "timed_out":
		return "timed out"
	case "cancelled":
		return "was cancelled"
	}
	return "failed"
}

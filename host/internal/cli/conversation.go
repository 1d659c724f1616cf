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

// conversation is a post from the command line and how it ends.
type conversation struct {
	client *client.Client
	post   client.Post
	// names are the swarm's agents, as far as they are known.
	names []string
	// keptHint is what becomes of a task when the command ends early. Its %s is
	// the task.
	keptHint string
	// onSettled is called when there is an answer, or will be none.
	onSettled func()
	// hostStays: the host outlives the command, so a paused task can be resumed.
	hostStays bool
	// dataRemoved: the task's data is removed with the host.
	dataRemoved bool
}

// converse posts a message, shows the mail, and prints the answer.
func (a *app) converse(ctx context.Context, t conversation) error {
	if t.post.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.post.Timeout+overtime, errOvertime)
		defer cancel()
	}
	x, still := a.newExchange(t)
	defer still()
	begun := time.Now()
	out, err := x.run(ctx)
	still()
	if t.onSettled != nil {
		t.onSettled()
	}
	if err != nil {
		return t.explainFailure(err, x.task)
	}
	if !a.json() {
		a.notef("\n  %s", a.noteStyle().dim(summary(out, len(x.messages), time.Since(begun))))
	}
	if state, _ := endState(out); state == statePaused {
		return a.printPaused(t, out, x.messages)
	}
	return a.printAnswer(out, x.messages)
}

// newExchange prepares the exchange of a post and prints its mail as it flows. Nothing
// is printed any more once still has returned.
func (a *app) newExchange(t conversation) (x *exchange, still func()) {
	st := a.noteStyle()
	view := newMailview(a.env.Stderr, st, a.env.Width, append(t.names, "you")...)
	view.live = a.env.StderrTerminal && a.env.Width >= minWide && a.env.get("TERM") != "dumb"
	still = a.startIdleTicks(view)
	x = &exchange{client: t.client, post: t.post, answered: func() { a.answered.Store(true) }}
	x.accepted = func(id string) {
		if !a.json() {
			a.notef("%s %s  %s\n", st.dim("task"), st.bold(inLine(id)), st.dim(t.client.URL()))
		}
	}
	x.event = func(e client.Event) {
		if !a.json() {
			view.printEvent(e)
		}
	}
	x.missed = func(err error) {
		still()
		a.notef("skep: the mail cannot be shown any more: %s", indentBelow(printable(err.Error()), noteIndent))
	}
	return x, still
}

// printPaused prints what a task waits for, and how to resume it.
func (a *app) printPaused(t conversation, out outcome, messages []mail.Message) error {
	resume := "skep task resume " + argument(out.answer.Task) + " --result TEXT"
	switch {
	case t.dataRemoved && a.json():
		if err := a.printAnswer(out, messages); err != nil {
			return err
		}
		return reported(exitFailed)
	case t.dataRemoved:
		return failf(exitFailed, "the task waits for a person, and its data is gone with this run: %s", printable(out.answer.Body)).help(
			"run it with --data DIR, or post it to a host with `skep serve` and `skep send`; then `%s` answers", resume)
	case a.json():
	case t.hostStays:
		a.notef("  it waits for an answer: `%s`", a.sameSwarm(resume))
	default:
		a.notef("  it waits for an answer: start `%s`, then `%s`", a.sameSwarm("skep serve"), a.sameSwarm(resume))
	}
	return a.printAnswer(out, messages)
}

// explainFailure explains an exchange without an answer.
func (t conversation) explainFailure(err error, task string) error {
	f := explain(err)
	if errors.Is(err, errOvertime) {
		f.code = exitTimeout
	}
	if task != "" && t.keptHint != "" {
		f.hint = strings.ReplaceAll(t.keptHint, "%s", inLine(task))
	}
	return f
}

// summary renders the end of a task in one line.
func summary(out outcome, messages int, took time.Duration) string {
	parts := []string{stateName(out) + " in " + span(took), plural(int64(messages), "message")}
	if u := out.record.Usage; u.Turns > 0 && out.continued {
		parts = append(parts, "whole task: "+usageText(u))
	} else if u.Turns > 0 {
		parts = append(parts, usageText(u))
	}
	return strings.Join(parts, " · ")
}

// usage is nil when the host did not report it.
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

// endings maps the subject of a system's completion to a state and an exit code.
var endings = map[string]struct {
	state string
	code  int
}{
	mail.SubjectTaskComplete:       {"completed", exitOK},
	mail.SubjectBreakpointToolCall: {statePaused, exitOK},
	mail.SubjectTaskTimeout:        {"timed_out", exitTimeout},
	mail.SubjectTaskCancelled:      {"cancelled", exitFailed},
}

// endState returns the state of a post and its exit code.
func endState(out outcome) (state string, code int) {
	if e, ok := endings[out.answer.Subject]; ok {
		return e.state, e.code
	}
	if out.answer.Subject == "" && out.record.State != "" {
		// The host names no subject: the task's state decides.
		for _, e := range endings {
			if e.state == out.record.State {
				return e.state, e.code
			}
		}
	}
	return "failed", exitFailed
}

func stateName(out outcome) string {
	state, _ := endState(out)
	return strings.ReplaceAll(state, "_", " ")
}

// printAnswer prints the answer and chooses the exit code.
func (a *app) printAnswer(out outcome, messages []mail.Message) error {
	state, code := endState(out)
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

package isolation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"skep/host/client"
)

type obj = map[string]any

// call is one call of a script.
type call struct {
	name string
	args obj
}

// failed reports whether the text of a call's result is an error.
func failed(text string) bool { return strings.HasPrefix(text, "ERROR ") }

// script is the body that makes the script agent do calls.
func script(calls ...call) string {
	pairs := make([][2]any, len(calls))
	for i, c := range calls {
		pairs[i] = [2]any{c.name, c.args}
	}
	raw, _ := json.Marshal(pairs) // strings and numbers always encode
	return string(raw)
}

// separator stands between the texts of results.
const separator = "\n-- isolation --\n"

// play runs a script in a task and returns the text of each call's result.
func play(ctx context.Context, c *client.Client, p client.Post, calls ...call) ([]string, error) {
	texts := make([]string, len(calls))
	for i := range calls {
		texts[i] = fmt.Sprintf("{{%d}}", i)
	}
	finish := call{"task_complete", obj{"finish_message": strings.Join(texts, separator)}}
	p.Body = script(append(calls[:len(calls):len(calls)], finish)...)
	answer, err := c.PostMessage(ctx, p)
	if err != nil {
		return nil, err
	}
	got := strings.Split(answer.Body, separator)
	if len(got) != len(calls) {
		return nil, fmt.Errorf("the script ended with: %s", answer.Body)
	}
	return got, nil
}

// wait starts a task that waits for a timer which brings a text.
func wait(ctx context.Context, c *client.Client, task, text string) error {
	body := script(call{"timer.set", obj{"after": "1h", "body": text}}, call{"await_message", obj{}})
	_, err := c.PostAsync(ctx, client.Post{Task: task, Body: body})
	return err
}

// timerOf finds the timer that a task has set in its log.
func timerOf(t client.Task) string {
	for _, e := range t.Events {
		var extra struct {
			Timer string `json:"timer_id"`
		}
		if e.Name == "timer_set" && json.Unmarshal(e.Extra, &extra) == nil {
			return extra.Timer
		}
	}
	return ""
}

// until asks again and again, as long as ctx lives.
func until(ctx context.Context, ok func() (bool, error)) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

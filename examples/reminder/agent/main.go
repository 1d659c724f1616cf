// Command agent remembers things and says them when it is time: "in 10m tea"
// waits and then answers, "list" shows what is pending in all tasks, and "cancel",
// sent to a task that waits, ends it.
package main

import (
	"encoding/json"
	"strings"
	"time"

	skep "skep/sdk/go"
)

// Reminder is the agent. What is pending is kept under a key of its timer.
type Reminder struct{}

// State is what the agent remembers of one task: its timers.
type State struct {
	Timers []string `json:"timers"`
}

const pending = "pending/"

var _ = skep.Run(skep.Descriptor{
	Name: "reminder", Version: "1.0.0",
	Description: "Says things when it is time.",
	Agents:      []skep.AgentInfo{{Name: "reminder", Description: `Send it "in 10m tea", "list" or "cancel".`}},
	Requests: []skep.Request{{
		Allow: "kv", Value: json.RawMessage(`"agent"`), Reason: "to list what is pending in all tasks",
	}},
}, Reminder{})

func main() {}

// Turn handles a wish of the user, or the timer that the wish has set.
func (Reminder) Turn(t *skep.Turn) error {
	kv := t.KV(skep.ScopeAgent)
	if t.Message.FromTimer() {
		if err := kv.Delete(pending + t.Message.ID); err != nil {
			return err
		}
		return t.TaskComplete("It is time: " + t.Message.Body)
	}
	what, rest, _ := strings.Cut(strings.TrimSpace(t.Message.Body), " ")
	switch what {
	case "in":
		return remind(t, kv, rest)
	case "list":
		return list(t, kv)
	case "cancel":
		return cancel(t, kv)
	}
	return t.TaskComplete(`I know "in 10m tea", "list" and "cancel".`)
}

// remind sets a timer. The turn ends, and the task waits without costing
// anything: for minutes or weeks, and through restarts of the host.
func remind(t *skep.Turn, kv skep.KV, wish string) error {
	span, text, _ := strings.Cut(wish, " ")
	after, err := time.ParseDuration(span)
	if err != nil {
		return t.TaskComplete(span + ` is no time; write it as in "90s" or "1h30m".`)
	}
	id, err := t.SetTimer(after, text)
	if err != nil {
		return err
	}
	if err := kv.Put(pending+id, text); err != nil {
		return err
	}
	var state State
	if err := t.State(&state); err != nil {
		return err
	}
	state.Timers = append(state.Timers, id)
	if err := t.SetState(state); err != nil {
		return err
	}
	return t.AwaitMessage("until it is time")
}

// list shows what all tasks wait for.
func list(t *skep.Turn, kv skep.KV) error {
	var texts []string
	for key, err := range kv.Keys(pending) {
		if err != nil {
			return err
		}
		text, err := kv.Get(key)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	if texts == nil {
		return t.TaskComplete("Nothing is pending.")
	}
	return t.TaskComplete("Pending: " + strings.Join(texts, ", "))
}

// cancel ends the timers of this task.
func cancel(t *skep.Turn, kv skep.KV) error {
	var state State
	if err := t.State(&state); err != nil {
		return err
	}
	for _, id := range state.Timers {
		if t.CancelTimer(id) != nil {
			continue // it has come already
		}
		if err := kv.Delete(pending + id); err != nil {
			return err
		}
	}
	t.ClearState()
	return t.TaskComplete("Cancelled.")
}

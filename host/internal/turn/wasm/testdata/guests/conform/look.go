package main

import (
	"fmt"
	"strings"

	skep "skep/sdk/go"
)

// view is what look shows, in its order.
type view struct {
	Turn         int64    `json:"turn"`
	Priority     int      `json:"priority"`
	Task         string   `json:"task"`
	Owner        string   `json:"owner"`
	Contributors []string `json:"contributors"`
	Completed    bool     `json:"completed"`
	Agent        string   `json:"agent"`
	Swarm        string   `json:"swarm"`
	Instance     string   `json:"instance"`
	Targets      []string `json:"targets"`
	CanComplete  bool     `json:"can_complete"`
	Tools        []string `json:"tools"`
	ID           string   `json:"id"`
	Type         string   `json:"type"`
	Ref          string   `json:"ref"`
	From         string   `json:"from"`
	To           []string `json:"to"`
	Subject      string   `json:"subject"`
	Body         string   `json:"body"`
	DeadlineMS   int64    `json:"deadline_ms"`
	HostCalls    int64    `json:"host_calls"`
	OutputBytes  int64    `json:"output_bytes"`
	Trace        string   `json:"trace"`
}

func look(t *skep.Turn) string {
	m := &t.Message
	v := view{
		Turn: t.Number, Priority: t.Priority,
		Task: t.Task.ID, Owner: t.Task.Owner, Contributors: list(t.Task.Contributors), Completed: t.Task.Completed,
		Agent: t.Agent.Name, Swarm: t.Agent.Swarm, Instance: t.Agent.Instance,
		Targets: list(t.Agent.CommTargets), CanComplete: t.Agent.CanComplete, Tools: []string{},
		ID: m.ID, Type: string(m.Type), Ref: m.RefID, From: address(m.Sender), To: []string{},
		Subject: m.Subject, Body: m.Body,
		DeadlineMS: t.Deadline.Milliseconds(), HostCalls: t.Budget.HostCalls, OutputBytes: t.Budget.OutputBytes, Trace: t.Trace,
	}
	tools, _ := t.Tools() // the host's own; a fault shows as an empty list
	for _, tool := range tools {
		v.Tools = append(v.Tools, tool.Name)
	}
	for _, to := range m.Recipients {
		v.To = append(v.To, address(to))
	}
	return plain(v)
}

func list(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}

func address(a skep.Address) string { return string(a.Type) + ":" + a.Name }

func tail(t *skep.Turn) (string, error) {
	entries, err := t.History()
	return strings.Join(append([]string{fmt.Sprint(t.HistoryCount())}, lines(entries)...), "; "), err
}

func history(t *skep.Turn, a args) string {
	entries, next, err := t.HistoryAfter(a.After, a.Limit)
	return text(strings.Join(append(lines(entries), fmt.Sprint("next ", next)), "; "), err)
}

func lines(entries []skep.Entry) []string {
	var all []string
	for _, e := range entries {
		line := fmt.Sprintf("note %s", e.Note)
		switch {
		case e.Message != nil:
			line = fmt.Sprintf("in %s %s", e.Message.Type, e.Message.Subject)
		case e.Call != nil:
			line = fmt.Sprintf("call %s %s", e.Call.Name, e.Call.Args)
		case e.Result != nil && e.Result.OK:
			line = "result ok " + e.Result.Text
		case e.Result != nil:
			line = "result error " + e.Result.Text
		}
		all = append(all, fmt.Sprintf("%d %d %s", e.Seq, e.Turn, line))
	}
	return all
}

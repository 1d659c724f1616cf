package rest

import (
	"net/http"

	"skep/abi"
	"skep/host/internal/swarm"
)

// Bounds of one page of a history: entries by default and at most, and bytes
// beyond which no more are read.
const (
	historyPage  = 100
	historyMost  = 500
	historyBatch = 32
	historyBytes = 4 << 20
)

// history is GET /skep/v1/tasks/{id}/history.
func (c *call) history() error {
	after, err := c.number("after", 0, 0, 1<<62)
	if err != nil {
		return err
	}
	limit, err := c.number("limit", historyPage, 1, historyMost)
	if err != nil {
		return err
	}
	agent := c.r.URL.Query().Get("agent")
	if agent == "" {
		return badRequest("agent is required")
	}
	snap, err := c.snapshot(c.r.PathValue("task_id"))
	if err != nil {
		return err
	}
	if err := c.checkAgent(agent, snap.Task); err != nil {
		return err
	}
	entries, err := c.entries(snap.Task.Key, agent, after, int(limit))
	if err != nil {
		return err
	}
	var next *int64
	if n := len(entries); n > 0 && entries[n-1].Seq < snap.Task.History[agent] {
		next = &entries[n-1].Seq
	}
	return c.reply(struct {
		Task    string             `json:"task_id"`
		Agent   string             `json:"agent"`
		Entries []abi.HistoryEntry `json:"entries"`
		Next    *int64             `json:"next"`
	}{snap.Task.Key.Task, agent, entries, next})
}

// checkAgent refuses names that neither the swarm nor the task knows. An agent
// of an older definition still has its history.
func (c *call) checkAgent(name string, t swarm.Task) error {
	if _, ok := t.History[name]; ok {
		return nil
	}
	if def, err := c.definition(); err == nil {
		for _, a := range def.Agents {
			if a.Name == name {
				return nil
			}
		}
	}
	return newFault(http.StatusNotFound, "agent '%s' not found", name)
}

// entries reads a page in batches, and stops early when it has grown large.
func (c *call) entries(key swarm.TaskKey, agent string, after int64, limit int) ([]abi.HistoryEntry, error) {
	all, size := []abi.HistoryEntry{}, 0
	for len(all) < limit && size < historyBytes {
		batch, err := c.h.rt.History(c.ctx(), key, agent, after, min(historyBatch, limit-len(all)))
		if err != nil {
			return nil, err
		}
		if len(batch) == 0 {
			break
		}
		for _, e := range batch {
			size += entrySize(e)
		}
		all, after = append(all, batch...), batch[len(batch)-1].Seq
	}
	return all, nil
}

func entrySize(e abi.HistoryEntry) int {
	n := len(e.Message) + len(e.Note)
	if e.Call != nil {
		n += len(e.Call.Args)
	}
	if e.Result != nil {
		n += len(e.Result.Text)
	}
	return n
}

package rest

import (
	"net/http"

	"skep/abi"
	"skep/host/internal/swarm"
)

// Bounds of one page of a history: default and maximum of entries, entries of one
// read, and the bytes after which reading stops.
const (
	historyPage  = 100
	historyMax   = 500
	historyBatch = 32
	historyBytes = 4 << 20
)

// history is GET /skep/v1/tasks/{id}/history.
func (c *call) history() error {
	after, err := c.intParam("after", 0, 0, maxCursor)
	if err != nil {
		return err
	}
	limit, err := c.intParam("limit", historyPage, 1, historyMax)
	if err != nil {
		return err
	}
	agent, err := c.param("agent")
	if err != nil {
		return err
	}
	if agent == "" {
		return badRequest("agent is required")
	}
	key, _, err := c.contentKey()
	if err != nil {
		return err
	}
	snap, err := c.readTask(key)
	if err != nil {
		return err
	}
	if err := c.checkAgent(agent, snap.Task); err != nil {
		return err
	}
	entries, err := c.readEntries(snap.Task.Key, agent, after, int(limit))
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

// checkAgent refuses names that neither the swarm nor the task has. An agent of
// an older definition keeps its history.
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

// readEntries reads a page in batches until it holds historyBytes.
func (c *call) readEntries(key swarm.TaskKey, agent string, after int64, limit int) ([]abi.HistoryEntry, error) {
	all, size := []abi.HistoryEntry{}, 0
	for len(all) < limit && size < historyBytes {
		batch, err := c.h.tasks.History(c.ctx(), key, agent, after, min(historyBatch, limit-len(all)))
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

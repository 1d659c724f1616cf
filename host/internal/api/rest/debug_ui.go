package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

type uiAgent struct {
	Name       string   `json:"name"`
	Targets    []string `json:"comm_targets"`
	Entrypoint bool     `json:"enable_entrypoint"`
	Complete   bool     `json:"can_complete_tasks"`
	Interswarm bool     `json:"enable_interswarm"`
	Trusted    bool     `json:"trusted,omitempty"`
}

// uiAgents is GET /ui/agents.
func (c *call) uiAgents() error {
	def, err := c.definition()
	if err != nil {
		return err
	}
	agents := []uiAgent{}
	for _, a := range def.Agents {
		agents = append(agents, uiAgent{a.Name, nonNil(a.Targets), a.Entrypoint, a.CanComplete, a.Interswarm, a.Trusted})
	}
	return c.reply(struct {
		Agents     []uiAgent `json:"agents"`
		Entrypoint string    `json:"entrypoint"`
	}{agents, def.Entrypoint})
}

// uiMessage is POST /ui/message: a post that is streamed by default, and
// otherwise answered with the log.
func (c *call) uiMessage() error {
	o, err := c.bodyObject()
	if err != nil {
		return err
	}
	p, err := readPost(o)
	if err != nil {
		return err
	}
	if _, given := o.get("stream"); !given {
		p.stream = true
	}
	p.showEvents = true
	return c.submitPost(p)
}

// uiRecord is a task in the viewer's list.
type uiRecord struct {
	ID        string `json:"task_id"`
	Owner     string `json:"task_owner"`
	Running   bool   `json:"is_running"`
	Completed bool   `json:"completed"`
	Started   string `json:"start_time"`
	Title     string `json:"title"`
}

func (c *call) newUIRecord(t swarm.Task) (uiRecord, error) {
	title, err := c.readTitle(t.Key)
	return uiRecord{
		ID: t.Key.Task, Owner: t.Owner, Running: t.State == swarm.StateRunning, Completed: t.State != swarm.StateRunning,
		Started: formatTime(t.Created), Title: title,
	}, err
}

// uiTasks is GET /ui/tasks, newest first.
func (c *call) uiTasks() error {
	return c.eachTask("[", func(separator string, t swarm.Task) error {
		r, err := c.newUIRecord(t)
		if err != nil {
			return err
		}
		return c.writeParts([]byte(separator), encode(struct {
			uiRecord
			Events int64 `json:"event_count"`
		}{r, t.Cursor}))
	}, func() string { return "]" })
}

// readUISnapshot reads a task of the caller. These routes have their own text for
// a missing task.
func (c *call) readUISnapshot() (swarm.Task, error) {
	id := c.r.PathValue("task_id")
	snap, err := c.h.tasks.Task(c.ctx(), c.taskKey(id))
	if errors.Is(err, swarm.ErrNotFound) {
		err = newFault(http.StatusNotFound, "Task '%s' not found", id)
	}
	return snap.Task, err
}

// uiSummary is GET /ui/task-summary/{id}. Titles are not stored, so force_regen
// has no effect.
func (c *call) uiSummary() error {
	if _, err := c.boolParam("force_regen"); err != nil {
		return err
	}
	t, err := c.readUISnapshot()
	if err != nil {
		return err
	}
	title, err := c.readTitle(t.Key)
	if err != nil {
		return err
	}
	return c.reply(struct {
		ID    string `json:"task_id"`
		Title string `json:"title"`
	}{t.Key.Task, title})
}

// Bounds of a title, and the title of a task without messages.
const (
	titleWords = 6
	titleRunes = 60
	noTitle    = "<no messages>"
)

// readTitle returns the first words of a task's first message.
func (c *call) readTitle(key swarm.TaskKey) (string, error) {
	events, err := c.h.streams.Events(c.ctx(), key, 0, 1)
	if err != nil || len(events) == 0 {
		return noTitle, err
	}
	return titleOf(events[0]), nil
}

func titleOf(e swarm.Event) string {
	m, ok := fullMessage(e)
	words := strings.Fields(m.Payload.Body)
	if !ok || len(words) == 0 {
		return noTitle
	}
	text := []rune(strings.Join(words[:min(len(words), titleWords)], " "))
	if len(text) > titleRunes || len(words) > titleWords {
		return string(text[:min(len(text), titleRunes)]) + "…"
	}
	return string(text)
}

// fullMessage returns the message in an event, if it has one.
func fullMessage(e swarm.Event) (mail.Message, bool) {
	var extra struct {
		Message *mail.Message `json:"full_message"`
	}
	if json.Unmarshal(e.Extra, &extra) != nil || extra.Message == nil {
		return mail.Message{}, false
	}
	return *extra.Message, true
}

package rest

import (
	"bytes"
	"fmt"
	"strconv"

	"skep/host/internal/swarm"
)

// uiEvent is an event in the viewer of one task.
type uiEvent struct {
	Event string  `json:"event"`
	Data  any     `json:"data"`
	ID    *string `json:"id"`
}

// uiTask is GET /ui/task/{id}. It writes the log while reading it.
func (c *call) uiTask() error {
	t, err := c.readUISnapshot()
	if err != nil {
		return err
	}
	r, err := c.newUIRecord(t)
	if err != nil {
		return err
	}
	return c.writeJSON(func() error {
		head := bytes.TrimSuffix(encode(r), []byte{'}'})
		if err := c.writeParts(head, []byte(`,"events":[`)); err != nil {
			return err
		}
		separator := ""
		err := c.eachEvent(t.Key, t.Cursor, func(e swarm.Event) error {
			text := encode(uiEvent{Event: e.Name, Data: newEventData(t.Key.Task, e)})
			err := c.writeParts([]byte(separator), text)
			separator = ","
			return err
		})
		if err != nil {
			return err
		}
		return c.writeParts([]byte("]}"))
	})
}

// dumpedEvent is an event of GET /ui/dump-events.
type dumpedEvent struct {
	Task  string `json:"task_id"`
	Event string `json:"event_type"`
	ID    string `json:"event_id"`
	Data  any    `json:"data"`
}

// uiDump is GET /ui/dump-events: the logs of all tasks of the caller. It writes
// no file.
func (c *call) uiDump() error {
	count, separator := 0, ""
	return c.eachTask(`{"events":[`, func(_ string, t swarm.Task) error {
		return c.eachEvent(t.Key, t.Cursor, func(e swarm.Event) error {
			text := encode(dumpedEvent{t.Key.Task, e.Name, strconv.FormatInt(e.Seq, 10), newEventData(t.Key.Task, e)})
			err := c.writeParts([]byte(separator), text)
			count, separator = count+1, ","
			return err
		})
	}, func() string { return fmt.Sprintf(`],"event_count":%d,"message":"the events of your tasks"}`, count) })
}

package rest

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"skep/host/internal/swarm"
)

// uiEvent is an event as a viewer of one task is shown it.
type uiEvent struct {
	Event string  `json:"event"`
	Data  any     `json:"data"`
	ID    *string `json:"id"`
}

// uiTask is GET /ui/task/{id}, with the log as it is read.
func (c *call) uiTask() error {
	t, err := c.uiSnapshot()
	if err != nil {
		return err
	}
	r, err := c.newUIRecord(t)
	if err != nil {
		return err
	}
	return c.written(func() error {
		head := bytes.TrimSuffix(encode(r), []byte{'}'})
		if err := c.writeParts(head, []byte(`,"events":[`)); err != nil {
			return err
		}
		separator := ""
		err := c.eachEvent(t.Key, func(e swarm.Event) error {
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

// dumped is an event as GET /ui/dump-events shows it.
type dumped struct {
	Task  string `json:"task_id"`
	Event string `json:"event_type"`
	ID    string `json:"event_id"`
	Data  any    `json:"data"`
}

// uiDump is GET /ui/dump-events: the logs of all tasks of the caller. Nothing is
// written to a file.
func (c *call) uiDump() error {
	count, separator := 0, ""
	return c.eachTask(`{"events":[`, func(_ string, t swarm.Task) error {
		return c.eachEvent(t.Key, func(e swarm.Event) error {
			text := encode(dumped{t.Key.Task, e.Name, strconv.FormatInt(e.Seq, 10), newEventData(t.Key.Task, e)})
			err := c.writeParts([]byte(separator), text)
			count, separator = count+1, ","
			return err
		})
	}, func() string { return fmt.Sprintf(`],"event_count":%d,"message":"the events of your tasks"}`, count) })
}

// eachTask writes an answer that has something of each of the caller's tasks,
// newest first, as it is read. The separator is empty for the first.
func (c *call) eachTask(open string, one func(separator string, t swarm.Task) error, end func() string) error {
	page, err := c.h.rt.Tasks(c.ctx(), c.instance(), time.Time{}, taskPage)
	if err != nil {
		return err
	}
	return c.written(func() error {
		err := c.writeParts([]byte(open))
		separator := ""
		for len(page) > 0 && err == nil {
			for _, t := range page {
				if err := one(separator, t); err != nil {
					return err
				}
				separator = ","
			}
			page, err = c.h.rt.Tasks(c.ctx(), c.instance(), page[len(page)-1].Created, taskPage)
		}
		if err != nil {
			return err
		}
		return c.writeParts([]byte(end()))
	})
}

// written answers with JSON that is written piece by piece. One that cannot be
// finished is cut off.
func (c *call) written(write func() error) error {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return nil
	}
	if err := write(); err != nil {
		c.abort(err)
	}
	return nil
}

func (c *call) writeParts(parts ...[]byte) error {
	_, err := c.w.Write(bytes.Join(parts, nil))
	return err
}

package rest

import (
	"encoding/json"

	"skep/host/internal/swarm"
)

// eventData is the payload of an ordinary event (contract 2.2).
type eventData struct {
	Timestamp   string          `json:"timestamp"`
	Description string          `json:"description"`
	Task        string          `json:"task_id"`
	Extra       json.RawMessage `json:"extra_data"`
}

// answerData is the payload of task_complete and task_error on a stream. In the
// log they look like all others.
type answerData struct {
	Timestamp string `json:"timestamp"`
	Task      string `json:"task_id"`
	Response  string `json:"response"`
}

// pingData is the payload of ping.
type pingData struct {
	Timestamp string `json:"timestamp"`
	Task      string `json:"task_id"`
}

func newEventData(task string, e swarm.Event) eventData {
	extra := e.Extra
	if len(extra) == 0 {
		extra = json.RawMessage("{}")
	}
	return eventData{stamp(e.Time), e.Text(), task, extra}
}

// streamData is an event's payload as a stream shows it.
func streamData(task string, e swarm.Event) any {
	if a, ok := e.Answer(); ok {
		return answerData{stamp(e.Time), task, a.Body}
	}
	return newEventData(task, e)
}

// loggedEvent is an event in a record or an answer (contract 2.4). Data is the
// payload itself, or a string that holds it (contract 1.3, GET /tasks).
type loggedEvent struct {
	Event   string  `json:"event"`
	Data    any     `json:"data"`
	ID      *string `json:"id"`
	Retry   *int    `json:"retry"`
	Comment *string `json:"comment"`
	Sep     string  `json:"_sep"`
}

// eventPage bounds what is read of a log at once.
const eventPage = 256

// eachEvent reads a task's log, page by page: a log may be larger than memory.
func (c *call) eachEvent(key swarm.TaskKey, visit func(swarm.Event) error) error {
	after := int64(0)
	for {
		page, err := c.h.rt.Events(c.ctx(), key, after, eventPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			if err := visit(e); err != nil {
				return err
			}
			after = e.Seq
		}
	}
}

// writeLog writes the elements of a task's whole log.
func (c *call) writeLog(key swarm.TaskKey, asText bool) error {
	separator := ""
	return c.eachEvent(key, func(e swarm.Event) error {
		one := loggedEvent{Event: e.Name, Data: newEventData(key.Task, e), Sep: "\r\n"}
		if asText {
			one.Data = string(encode(one.Data))
		}
		_, err := c.w.Write(append([]byte(separator), encode(one)...))
		separator = ","
		return err
	})
}

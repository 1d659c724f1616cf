package rest

import (
	"encoding/json"

	"skep/host/internal/swarm"
)

// eventData is the payload of an ordinary event.
type eventData struct {
	Timestamp   string          `json:"timestamp"`
	Description string          `json:"description"`
	Task        string          `json:"task_id"`
	Extra       json.RawMessage `json:"extra_data"`
}

// answerData is the payload of task_complete and task_error on a stream. The log
// holds them as eventData.
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
	return eventData{formatTime(e.Time), e.Text(), task, extra}
}

// streamData returns an event's payload on a stream.
func streamData(task string, e swarm.Event) any {
	if a, ok := e.Answer(); ok {
		return answerData{formatTime(e.Time), task, a.Body}
	}
	return newEventData(task, e)
}

// loggedEvent is an event in a record or an answer. Data is the payload, or a
// string with its JSON (GET /tasks).
type loggedEvent struct {
	Event   string  `json:"event"`
	Data    any     `json:"data"`
	ID      *string `json:"id"`
	Retry   *int    `json:"retry"`
	Comment *string `json:"comment"`
	Sep     string  `json:"_sep"`
}

// eventPage bounds the events of one read.
const eventPage = 256

// eachEvent reads a task's log page by page, as a log may be larger than memory, up to the
// event with the number last.
func (c *call) eachEvent(key swarm.TaskKey, last int64, visit func(swarm.Event) error) error {
	for after := int64(0); after < last; {
		page, err := c.h.streams.Events(c.ctx(), key, after, int(min(eventPage, last-after)))
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
	return nil
}

// writeLog writes a task's log up to the event with the number last, as elements of a JSON
// array.
func (c *call) writeLog(key swarm.TaskKey, last int64, asText bool) error {
	separator := ""
	return c.eachEvent(key, last, func(e swarm.Event) error {
		one := loggedEvent{Event: e.Name, Data: newEventData(key.Task, e), Sep: "\r\n"}
		if asText {
			one.Data = string(encode(one.Data))
		}
		_, err := c.w.Write(append([]byte(separator), encode(one)...))
		separator = ","
		return err
	})
}

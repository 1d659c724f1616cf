package rest

import (
	"encoding/json"

	"skep/host/internal/swarm"
	"skep/spec/mail"
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

// appendJSON appends the payload as JSON to dst.
func (d eventData) appendJSON(dst []byte) []byte {
	dst = mail.AppendText(append(dst, `{"timestamp":`...), d.Timestamp)
	dst = mail.AppendText(append(dst, `,"description":`...), d.Description)
	dst = mail.AppendText(append(dst, `,"task_id":`...), d.Task)
	dst = append(append(dst, `,"extra_data":`...), d.Extra...)
	return append(dst, '}')
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

// loggedEvents stand for a log that is written while it is read, in the JSON around it.
type loggedEvents [0]struct{}

// loggedEnd ends an event in a record or an answer: the reference writes all fields of its
// class for server-sent events.
const loggedEnd = `,"id":null,"retry":null,"comment":null,"_sep":"\r\n"}`

// appendLogged appends an event of a log to dst. Its data is the payload, or a string with
// its JSON (GET /tasks).
func appendLogged(dst []byte, task string, e swarm.Event, asText bool) []byte {
	dst = mail.AppendText(append(dst, `{"event":`...), e.Name)
	dst = append(dst, `,"data":`...)
	if data := newEventData(task, e); asText {
		dst = mail.AppendText(dst, string(data.appendJSON(nil)))
	} else {
		dst = data.appendJSON(dst)
	}
	return append(dst, loggedEnd...)
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
	var line []byte
	return c.eachEvent(key, last, func(e swarm.Event) error {
		isFirst := line == nil
		if line = line[:0]; !isFirst {
			line = append(line, ',')
		}
		line = appendLogged(line, key.Task, e, asText)
		_, err := c.w.Write(line)
		return err
	})
}

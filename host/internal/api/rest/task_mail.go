package rest

import (
	"encoding/json"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// mailShape is an event of a task's log without content.
type mailShape struct {
	Seq   int64  `json:"seq"`
	Time  string `json:"time"`
	Event string `json:"event"`
	// The rest is of messages only.
	From      string   `json:"from,omitempty"`
	To        []string `json:"to,omitempty"`
	Recipient string   `json:"recipient,omitempty"`
	Type      string   `json:"msg_type,omitempty"`
	Tier      int      `json:"tier,omitempty"`
	// Size is the length of subject and body in bytes.
	Size int `json:"size,omitempty"`
}

func newMailShape(e swarm.Event) mailShape {
	s := mailShape{Seq: e.Seq, Time: formatTime(e.Time), Event: e.Name}
	var extra struct {
		Message   *mail.Message `json:"full_message"`
		Recipient string        `json:"recipient"`
	}
	if e.Name != "new_message" || json.Unmarshal(e.Extra, &extra) != nil || extra.Message == nil {
		return s
	}
	m, p := *extra.Message, extra.Message.Payload
	s.From, s.Recipient, s.Type, s.Tier = p.Sender.Name, extra.Recipient, string(m.Type), mail.Tier(m)
	s.Size = len(p.Subject) + len(p.Body)
	for _, to := range p.Recipients {
		s.To = append(s.To, to.Name)
	}
	return s
}

// taskMail is GET /skep/v1/tasks/{id}/mail: who mailed whom, without what was said.
func (c *call) taskMail() error {
	after, err := c.intParam("after", 0, 0, maxCursor)
	if err != nil {
		return err
	}
	limit, err := c.intParam("limit", 100, 1, 500)
	if err != nil {
		return err
	}
	snap, _, err := c.readVisible()
	if err != nil {
		return err
	}
	events, err := c.h.streams.Events(c.ctx(), snap.Task.Key, after, int(limit))
	if err != nil {
		return err
	}
	list, next := []mailShape{}, (*int64)(nil)
	for _, e := range events {
		list = append(list, newMailShape(e))
	}
	if n := len(list); n > 0 && list[n-1].Seq < snap.Task.Cursor {
		next = &list[n-1].Seq
	}
	return c.reply(struct {
		Task string      `json:"task_id"`
		Mail []mailShape `json:"mail"`
		Next *int64      `json:"next"`
	}{snap.Task.Key.Task, list, next})
}

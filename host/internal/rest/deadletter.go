package rest

import (
	"strconv"

	"skep/host/internal/auth"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// deadLetter is a letter that nobody tries to deliver any more, as it is shown.
type deadLetter struct {
	ID       string       `json:"id"`
	Peer     string       `json:"peer"`
	Task     string       `json:"task_id"`
	Instance string       `json:"instance"`
	Reason   string       `json:"reason"`
	Since    string       `json:"since"`
	Died     string       `json:"died"`
	Message  mail.Message `json:"message"`
}

func newDeadLetter(d swarm.DeadLetter) deadLetter {
	return deadLetter{
		ID: d.ID, Peer: d.Peer, Task: d.Task.Task, Instance: d.Task.Instance, Reason: d.Dead.Reason,
		Since: stamp(d.Since), Died: stamp(d.Dead.At), Message: d.Message,
	}
}

// tenantOf is the caller's, or the one that an operator names. Nobody else names
// another one.
func (c *call) tenantOf() (string, error) {
	named, own := c.r.URL.Query().Get("tenant"), c.instance().Tenant
	switch {
	case named == "" || named == own:
		return own, nil
	case c.w.who.Role != auth.Operator:
		return "", denied("only an operator may name another tenant", "asked for tenant "+clipped(named))
	}
	return named, nil
}

// deadLetters is GET /skep/v1/dead-letters, newest first.
func (c *call) deadLetters() error {
	limit, err := c.number("limit", 100, 1, 1000)
	if err != nil {
		return err
	}
	before := int64(0)
	if text := c.r.URL.Query().Get("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			return badRequest("before must be the 'next' of an earlier answer")
		}
	}
	tenant, err := c.tenantOf()
	if err != nil {
		return err
	}
	page, err := c.h.rt.DeadLetters(c.ctx(), tenant, before, int(limit))
	if err != nil {
		return err
	}
	next, err := c.moreLetters(tenant, page)
	if err != nil {
		return err
	}
	shown := []deadLetter{}
	for _, d := range page {
		shown = append(shown, newDeadLetter(d))
	}
	return c.reply(struct {
		Letters []deadLetter `json:"dead_letters"`
		Next    *string      `json:"next"`
	}{shown, next})
}

// moreLetters is where the next page begins, nil when there is none.
func (c *call) moreLetters(tenant string, page []swarm.DeadLetter) (*string, error) {
	if len(page) == 0 {
		return nil, nil
	}
	last := page[len(page)-1].Place
	rest, err := c.h.rt.DeadLetters(c.ctx(), tenant, last, 1)
	if err != nil || len(rest) == 0 {
		return nil, err
	}
	at := strconv.FormatInt(last, 10)
	return &at, nil
}

// resend is POST /skep/v1/dead-letters/{id}/resend.
func (c *call) resend() error {
	id := c.r.PathValue("id")
	tenant, err := c.tenantOf()
	if err != nil {
		return err
	}
	d, err := c.h.rt.Resend(c.ctx(), tenant, id)
	if err := c.did("letter.resend", id, err); err != nil {
		return err
	}
	return c.reply(struct {
		Status string `json:"status"`
		ID     string `json:"id"`
		Peer   string `json:"peer"`
	}{"resent", d.ID, d.Peer})
}

package rest

import (
	"net/http"
	"strconv"

	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// deadLetter is a message whose delivery was given up, as JSON.
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
		Since: formatTime(d.Since), Died: formatTime(d.Dead.At), Message: d.Message,
	}
}

// requestedTenant returns the caller's tenant. An operator may name another in
// the query.
func (c *call) requestedTenant() (string, error) {
	named, err := c.param("tenant")
	own := c.instanceKey().Tenant
	switch {
	case err != nil:
		return "", err
	case named == "" || named == own:
		return own, nil
	case c.w.who.Role != auth.Operator:
		return "", denied("only an operator may name another tenant", "asked for tenant "+truncate(named))
	}
	return named, c.checkTenant(named)
}

// checkTenant refuses a tenant that is not in the file and keeps nothing.
func (c *call) checkTenant(tenant string) error {
	known, err := c.h.usage.KnowsTenant(c.ctx(), tenant)
	if err == nil && !known {
		err = newFault(http.StatusNotFound, "there is no tenant '%s': add [tenants.NAME] or correct the name; `skep tenant list` shows the tenants", truncate(tenant))
	}
	return err
}

// deadLetters is GET /skep/v1/dead-letters, newest first.
func (c *call) deadLetters() error {
	limit, err := c.intParam("limit", 100, 1, 1000)
	if err != nil {
		return err
	}
	before, err := c.intParam("before", 0, 1, maxCursor)
	if err != nil {
		return err
	}
	tenant, err := c.requestedTenant()
	if err != nil {
		return err
	}
	page, err := c.h.deadLetters.DeadLetters(c.ctx(), tenant, before, int(limit))
	if err != nil {
		return err
	}
	next, err := c.nextDeadLetters(tenant, page)
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

// nextDeadLetters returns the cursor of the next page, nil when there is none.
func (c *call) nextDeadLetters(tenant string, page []swarm.DeadLetter) (*string, error) {
	if len(page) == 0 {
		return nil, nil
	}
	last := page[len(page)-1].Place
	rest, err := c.h.deadLetters.DeadLetters(c.ctx(), tenant, last, 1)
	if err != nil || len(rest) == 0 {
		return nil, err
	}
	at := strconv.FormatInt(last, 10)
	return &at, nil
}

// resend is POST /skep/v1/dead-letters/{id}/resend.
func (c *call) resend() error {
	id := c.r.PathValue("id")
	tenant, err := c.requestedTenant()
	if err != nil {
		return err
	}
	d, err := c.h.deadLetters.ResendDeadLetter(c.ctx(), tenant, id)
	if err := c.auditAct("letter.resend", id, err); err != nil {
		return err
	}
	return c.reply(struct {
		Status string `json:"status"`
		ID     string `json:"id"`
		Peer   string `json:"peer"`
	}{"resent", d.ID, d.Peer})
}

package rest

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// goingDown is what a waiting caller reads when the host stops.
const goingDown = "the host is shutting down; the task goes on at its next start"

// errPatience is the cause with which a post stops being waited for.
var errPatience = errors.New("the caller prefers not to wait any longer")

// postMessage is POST /message (S-17, R-022, R-025, R-026).
func (c *call) postMessage() error {
	p, err := parsePost(c.body, c.h.opt.MaxDepth)
	if err != nil {
		return err
	}
	return c.post(p)
}

// post hands a post in and answers as it asks to be.
func (c *call) post(p post) (err error) {
	if p.Key, err = idempotencyKey(c.r.Header); err != nil {
		return err
	}
	if p.stream {
		// Before the post is taken: a caller who is refused has posted nothing.
		leave, err := c.h.streams.enter(c.w.who.String())
		if err != nil {
			return err
		}
		defer leave()
	}
	p.Principal, p.Swarm, p.Door = c.principal(), c.h.opt.Swarm, door
	p.Digest, p.Trace = p.digest(), trace(c.r.Header)
	receipt, err := c.h.rt.Submit(c.ctx(), p.Post)
	if err != nil {
		return err
	}
	c.w.Header().Set(taskHeader, headerText(receipt.Task.Task))
	if p.stream {
		return c.streamPost(receipt)
	}
	wait, preferred := patience(c.r.Header, c.h.opt.MaxWait)
	if preferred {
		c.w.Header().Set("Preference-Applied", "respond-async")
		if wait == 0 {
			return c.accepted(receipt)
		}
	}
	return c.await(receipt, wait, p.showEvents)
}

// await answers with the post's answer (decision 6: 200 also when the system
// made it).
func (c *call) await(receipt *swarm.Receipt, wait time.Duration, showEvents bool) error {
	ctx := c.ctx()
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, wait, errPatience)
		defer cancel()
	}
	answer, err := c.held(ctx, receipt)
	switch {
	case errors.Is(err, errPatience):
		return c.accepted(receipt)
	case errors.Is(err, swarm.ErrDraining):
		return shutting()
	case err != nil:
		return err
	}
	c.w.Header().Set(finishHeader, answer.Subject)
	if showEvents {
		return c.replyWithLog(answer.Body, receipt.Task)
	}
	return c.reply(struct {
		Response string        `json:"response"`
		Events   []loggedEvent `json:"events"`
	}{answer.Body, nil})
}

// shutting is what a waiting caller is told when the host stops.
func shutting() *fault {
	return &fault{status: http.StatusServiceUnavailable, detail: goingDown, retry: 5, finish: mail.SubjectShutdownRequested}
}

// replyWithLog answers with the task's whole log beside the answer.
func (c *call) replyWithLog(response any, task swarm.TaskKey) error {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)
	head := append([]byte(`{"response":`), encode(response)...)
	if err := c.writeAround(append(head, ','), []byte("}"), task, false); err != nil {
		c.abort(err)
	}
	return nil
}

// accepted answers with where the answer will be found. The stream begins
// where the post does.
func (c *call) accepted(receipt *swarm.Receipt) error {
	location := ownPrefix + "tasks/" + url.PathEscape(receipt.Task.Task) + "/events"
	if receipt.Cursor > 1 {
		location += "?after=" + strconv.FormatInt(receipt.Cursor-1, 10)
	}
	c.w.Header().Set("Location", location)
	reply(c.w, http.StatusAccepted, struct {
		Task   string `json:"task_id"`
		Status string `json:"status"`
	}{receipt.Task.Task, "accepted"})
	return nil
}

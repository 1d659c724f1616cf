package rest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"skep/host/internal/spelling"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// shutdownText answers a waiting caller when the host stops.
const shutdownText = "the host is shutting down; the task goes on at its next start"

// errWaitOver is the cause when the caller's preferred wait is over.
var errWaitOver = errors.New("the caller prefers not to wait any longer")

// postMessage is POST /message (S-17, R-022, R-025, R-026).
func (c *call) postMessage() error {
	o, err := c.bodyObject()
	if err != nil {
		return err
	}
	p, err := readPost(o)
	if err != nil {
		return err
	}
	return c.submitPost(p)
}

// submitPost submits a post and answers in the form that the caller wants.
func (c *call) submitPost(p post) (err error) {
	if p.Key, err = idempotencyKey(c.r.Header); err != nil {
		return err
	}
	if p.Key == "" && c.h.opt.OtherHosts != nil {
		p.Key = c.hopKey()
	}
	if p.stream {
		// Before Submit: a refused caller has posted nothing.
		leave, err := c.h.openStreams.acquireStream(c.w.who)
		if err != nil {
			return err
		}
		defer leave()
	}
	p.Digest = p.digest()
	receipt, err := c.submit(p.Post)
	if err != nil {
		return err
	}
	if p.stream {
		return c.streamPost(receipt)
	}
	wait, preferred := preferredWait(c.r.Header, c.h.opt.MaxWait)
	if preferred && wait == 0 {
		return c.replyAccepted(receipt)
	}
	return c.replyWhenAnswered(receipt, wait, p.showEvents)
}

// submit submits a post of the caller and sets the header with its task.
func (c *call) submit(p swarm.Post) (*swarm.Receipt, error) {
	p.Principal, p.Swarm, p.Door, p.Trace = c.principal(), c.h.opt.Swarm, door, swarm.HeaderTrace(c.r.Header)
	receipt, err := c.h.posts.Submit(c.ctx(), p)
	if errors.Is(err, swarm.ErrNotFound) {
		if _, none := c.definition(); none != nil {
			return nil, none
		}
	}
	if errors.Is(err, swarm.ErrInvalid) && p.Entrypoint != "" {
		return nil, c.suggestEntrypoint(err, p.Entrypoint)
	}
	if err == nil {
		c.w.Header().Set(taskHeader, encodeHeader(receipt.Task.Task))
	}
	return receipt, err
}

// suggestEntrypoint adds to the refusal of a post to an unknown agent the entrypoint that the
// name probably stands for.
func (c *call) suggestEntrypoint(refused error, name string) error {
	def, err := c.definition()
	if err != nil {
		return refused
	}
	var names []string
	for _, a := range def.Agents {
		if a.Name == name {
			return refused
		}
		if a.Entrypoint {
			names = append(names, a.Name)
		}
	}
	if near := spelling.Nearest(name, names); near != "" {
		return &swarm.Refusal{Kind: swarm.ErrInvalid, Cause: "agent", Text: fmt.Sprintf("%s; did you mean '%s'?", refused.Error(), near)}
	}
	return refused
}

// submitAndWait submits a post and waits for its answer.
func (c *call) submitAndWait(p swarm.Post) (task swarm.TaskKey, answer swarm.Answer, err error) {
	receipt, err := c.submit(p)
	if err != nil {
		return task, answer, err
	}
	answer, err = c.awaitAnswer(c.ctx(), receipt)
	if errors.Is(err, swarm.ErrDraining) {
		err = shutdownFault()
	}
	if err == nil {
		c.w.Header().Set(finishHeader, answer.Subject)
	}
	return receipt.Task, answer, err
}

// replyWhenAnswered waits and replies with the answer. An answer that the system
// made is a 200 too.
func (c *call) replyWhenAnswered(receipt *swarm.Receipt, wait time.Duration, showEvents bool) error {
	ctx := c.ctx()
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, wait, errWaitOver)
		defer cancel()
	}
	answer, err := c.awaitAnswer(ctx, receipt)
	switch {
	case errors.Is(err, errWaitOver):
		return c.replyAccepted(receipt)
	case errors.Is(err, swarm.ErrDraining):
		return shutdownFault()
	case err != nil:
		return err
	}
	c.w.Header().Set(finishHeader, answer.Subject)
	if showEvents {
		return c.replyWithLog(answer.Body, receipt.Task)
	}
	return c.reply(struct {
		Response string        `json:"response"`
		Events   *loggedEvents `json:"events"`
	}{Response: answer.Body})
}

// shutdownFault answers a waiting caller when the host stops.
func shutdownFault() *fault {
	return &fault{status: http.StatusServiceUnavailable, detail: shutdownText, retryAfter: 5, cause: "stopping", finishSubject: mail.SubjectShutdownRequested}
}

// replyWithLog replies with the answer and the task's whole log.
func (c *call) replyWithLog(response any, task swarm.TaskKey) error {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)
	head := append([]byte(`{"response":`), encode(response)...)
	if err := c.writeAround(append(head, ','), []byte("}"), task, math.MaxInt64, false); err != nil {
		c.abort(err)
	}
	return nil
}

// replyAccepted replies 202 with the URL of the event stream, which begins at the
// post.
func (c *call) replyAccepted(receipt *swarm.Receipt) error {
	location := skepPrefix + "tasks/" + url.PathEscape(receipt.Task.Task) + "/events"
	if receipt.Cursor > 1 {
		location += "?after=" + strconv.FormatInt(receipt.Cursor-1, 10)
	}
	c.w.Header().Set("Location", location)
	if _, preferred := preferredWait(c.r.Header, c.h.opt.MaxWait); preferred {
		c.w.Header().Set("Preference-Applied", "respond-async")
	}
	reply(c.w, http.StatusAccepted, struct {
		Task   string `json:"task_id"`
		Status string `json:"status"`
	}{receipt.Task.Task, "accepted"})
	return nil
}

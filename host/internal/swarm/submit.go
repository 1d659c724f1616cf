package swarm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"skep/spec/mail"
)

// Principal is an authenticated caller.
type Principal struct {
	Tenant string
	// Role is mail.RoleUser, RoleAdmin or RoleSwarm.
	Role mail.Role
	ID   string
}

// Instance names the principal's instance of a swarm.
func (p Principal) Instance(swarm string) InstanceKey {
	return InstanceKey{Tenant: p.Tenant, Swarm: swarm, Instance: string(p.Role) + ":" + p.ID}
}

// Post is one message from outside, for the swarm's entrypoint or the agents in To.
type Post struct {
	Principal Principal
	Swarm     string
	// Door is where the post came in, as in [Origin]. Keys of different doors differ.
	Door string
	// Key identifies a repeated submission; empty means that no repeat is expected.
	// Digest distinguishes a repeat from another body. UniqueKey means that no earlier post
	// has the key, so that none is looked for.
	Key       string
	UniqueKey bool
	Digest    []byte
	// Task is the task to start or continue, empty for a new one. MustExist forbids to
	// start it.
	Task      string
	MustExist bool
	// Entrypoint is the first agent, empty for the swarm's own.
	Entrypoint string
	// To, if set, replaces Entrypoint: entrypoints of the swarm, and agents of other
	// swarms as NAME@SWARM. Only a broadcast has several.
	To []string
	// Results, if set, resume a paused task instead of bringing a message.
	Results *Results
	Type    mail.Type
	Subject string
	Body    string
	Trace   Trace
	// Timeout and MaxSteps replace the swarm's limits when they are positive, until
	// the task gets its next post. Only an admin may raise them.
	Timeout  time.Duration
	MaxSteps int
	// Note, Keep and Blobs are of a gateway's post; see [Incoming]. Info becomes its
	// routing_info.
	Note  []byte
	Keep  time.Duration
	Blobs []Blob
	Info  json.RawMessage
}

// keyLife is how long a submission can be found by its key.
const keyLife = 24 * time.Hour

// Receipt confirms that a post is durable. The receipt of a duplicate is the first
// submission's.
type Receipt struct {
	Task      TaskKey
	Row       int64
	Cursor    int64
	Duplicate bool

	sub    Submission
	answer chan Answer
}

func newReceipt(sub Submission) *Receipt {
	return &Receipt{Task: TaskKey{sub.Instance, sub.Task}, Row: sub.Row, Cursor: sub.Cursor, sub: sub}
}

// Submission is the submission as it was when the receipt was made.
func (r *Receipt) Submission() Submission { return r.sub }

// Submit accepts a post: when it returns, the message survives any crash.
// Refusals are of kind ErrInvalid, ErrNotFound, ErrConflict, ErrLimit and
// ErrDraining.
func (r *Runtime) Submit(ctx context.Context, p Post) (*Receipt, error) {
	if r.draining.Load() {
		return nil, ErrDraining
	}
	def, err := r.checkPost(&p)
	if err != nil {
		return nil, err
	}
	if p.Task != "" {
		if first, err := r.findRepeat(ctx, p); first != nil || err != nil {
			return first, err
		}
		return r.submitTo(ctx, p, def, r.acquireTask)
	}
	// Only the write looks for a repeat of a post that begins a task: it holds nothing up.
	if p.Task, err = r.newTaskID(p.Principal.Instance(p.Swarm)); err != nil {
		return nil, err
	}
	receipt, err := r.submitTo(ctx, p, def, r.acquireNewTask)
	if err != nil { // a repeat is answered though a new post is refused
		if first, findErr := r.findRepeat(ctx, p); first != nil || findErr != nil {
			return first, findErr
		}
	}
	return receipt, err
}

// submitTo accepts a post to a task, which acquire gets.
func (r *Runtime) submitTo(ctx context.Context, p Post, def *Definition, acquire acquireFunc) (*Receipt, error) {
	key := TaskKey{p.Principal.Instance(p.Swarm), p.Task}
	if err := r.share.checkAlive(key); err != nil {
		return nil, err
	}
	t, err := acquire(ctx, key, def)
	if err != nil {
		return nil, err
	}
	defer r.releaseTask(t)
	receipt, err := r.acceptPost(ctx, t, p)
	if err != nil {
		return nil, err
	}
	r.claimTurns(t)
	return receipt, nil
}

func (r *Runtime) checkPost(p *Post) (*Definition, error) {
	def, ok := r.definition(p.Principal.Tenant, p.Swarm)
	if !ok {
		return nil, refuse(ErrNotFound, "swarm '%s' not found", p.Swarm)
	}
	switch {
	case p.Task != "" && !mail.ValidTaskID(p.Task):
		return nil, refuse(ErrInvalid, "task_id must be 1 to 256 printable characters")
	case mail.Reserved(p.Subject):
		return nil, refuse(ErrInvalid, "subject must not begin with '::', which is reserved for the system")
	case len(p.Subject) > MaxSubject:
		return nil, refuse(ErrInvalid, "subject has %d bytes, at most %d", len(p.Subject), MaxSubject)
	case len(p.Body) > MaxBody:
		return nil, refuse(ErrInvalid, "body has %d bytes, at most %d", len(p.Body), MaxBody)
	case isGateway(p.Door):
		return def, checkGatewayMessage(p.Key, p.Note)
	}
	return def, nil
}

// findRepeat looks the key of a post up, and shows a repeat to the readers of its task; a nil
// receipt means that the post is new.
func (r *Runtime) findRepeat(ctx context.Context, p Post) (*Receipt, error) {
	if p.Key == "" || p.UniqueKey {
		return nil, nil
	}
	sub, err := r.store.Submission(ctx, p.Principal.Instance(p.Swarm), p.Door, p.Key)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !sub.Expires.After(r.now()):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return r.repeat(p, sub)
}

// repeat is the receipt of a post that has come before.
func (r *Runtime) repeat(p Post, first Submission) (*Receipt, error) {
	receipt, err := duplicateReceipt(p, first)
	if err == nil {
		r.showRepeat(receipt.Task, p.Door, p.Key)
	}
	return receipt, err
}

func duplicateReceipt(p Post, sub Submission) (*Receipt, error) {
	switch {
	case bytes.Equal(p.Digest, sub.Digest):
	case isGateway(p.Door):
		return nil, refuse(ErrConflict, "the message id was used for another message")
	default:
		return nil, refuse(ErrConflict, "the idempotency key was used for another request")
	}
	receipt := newReceipt(sub)
	receipt.Duplicate = true
	return receipt, nil
}

// Wait returns the answer to a post. It ends with ctx's cause, or with
// ErrDraining when the host stops first; the task then goes on at the next
// start.
func (r *Runtime) Wait(ctx context.Context, receipt *Receipt) (Answer, error) {
	if receipt.answer != nil {
		select {
		case a, ok := <-receipt.answer:
			if ok {
				return a, nil
			}
		case <-ctx.Done():
			return Answer{}, context.Cause(ctx)
		case <-r.stopped:
			return drainAnswer(receipt)
		}
	}
	s, err := r.followReceipt(ctx, receipt, Event{}, func(ExchangeState) bool { return false })
	return s.Answer, err
}

// drainAnswer looks once more for an answer that came with the runtime's last turn.
func drainAnswer(receipt *Receipt) (Answer, error) {
	if a, ok := receipt.takeAnswer(); ok {
		return a, nil
	}
	return Answer{}, ErrDraining
}

// takeAnswer returns the answer that has come since the receipt was made, once.
func (r *Receipt) takeAnswer() (Answer, bool) {
	select {
	case a, ok := <-r.answer:
		return a, ok
	default:
		return Answer{}, false
	}
}

// isErased reports whether the task was dropped because its tenant is erased, and none has
// its id since.
func (t *activeTask) isErased() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.erased && !t.exists
}

// isPruned reports whether the task of a submission is gone. A younger task may have its
// id.
func (t *activeTask) isPruned(sub Submission) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.exists || sub.isBefore(t.rec)
}

// isBefore reports whether a submission was accepted before a task was created.
func (s Submission) isBefore(task Task) bool {
	accepted := s.Accepted
	if accepted.IsZero() {
		accepted = s.Expires.Add(-keyLife)
	}
	return task.Created.After(accepted)
}

// AnswerCursor returns the cursor of the event that answers a post, 0 while there is
// none. A reader that has read an event and then calls it gets a definite result: the
// event and the answer are written by the same commit.
func (r *Runtime) AnswerCursor(ctx context.Context, receipt *Receipt) (int64, error) {
	sub, err := r.store.Submission(ctx, receipt.Task.InstanceKey, receipt.sub.Door, receipt.sub.Key)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	return sub.Answer, err
}

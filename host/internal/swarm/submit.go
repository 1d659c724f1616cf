package swarm

import (
	"bytes"
	"context"
	"errors"
	"time"

	"skep/spec/mail"
)

// Principal is who hands a message in.
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

// Post is one message from outside for a swarm's entrypoint.
type Post struct {
	Principal Principal
	Swarm     string
	Door      string
	// Key makes a repeat find the first submission; empty means that no
	// repeat is expected. Digest tells a repeat from another body.
	Key    string
	Digest []byte
	// Task is the task to start or continue, empty for a new one. MustExist
	// refuses to start it.
	Task      string
	MustExist bool
	// Entrypoint is empty for the swarm's own.
	Entrypoint string
	// To, if set, goes before Entrypoint: entrypoints of the swarm, and agents of
	// others as NAME@SWARM. Only a broadcast has several.
	To []string
	// Results, if set, resume a paused task instead of bringing a message.
	Results *Results
	Type    mail.Type
	Subject string
	Body    string
	Trace   string
	// Timeout and MaxSteps replace the swarm's limits for this task when they
	// are positive. Only an admin may raise them.
	Timeout  time.Duration
	MaxSteps int
}

// keyLife is how long a submission can be found by its key.
const keyLife = 24 * time.Hour

// Receipt says that a post is durable. A duplicate's receipt is that of the
// first submission.
type Receipt struct {
	Task      TaskKey
	Row       int64
	Cursor    int64
	Duplicate bool

	door, key string
	answer    chan Answer
}

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
	if first, err := r.repeated(ctx, p); first != nil || err != nil {
		return first, err
	}
	acquire := r.acquire
	if p.Task == "" {
		p.Task, acquire = newID(), r.acquireNew
	}
	key := TaskKey{p.Principal.Instance(p.Swarm), p.Task}
	t, err := acquire(ctx, key, def)
	if err != nil {
		return nil, err
	}
	defer r.release(t)
	receipt, err := r.accept(ctx, t, p)
	if err != nil {
		return nil, err
	}
	r.kick(t)
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
	}
	return def, nil
}

// repeated looks the key of a post up; a nil receipt means it is new.
func (r *Runtime) repeated(ctx context.Context, p Post) (*Receipt, error) {
	if p.Key == "" {
		return nil, nil
	}
	sub, err := r.store.Submission(ctx, p.Principal.Instance(p.Swarm), p.Door, p.Key)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !sub.Expires.After(r.now()):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return duplicate(p, sub)
}

func duplicate(p Post, sub Submission) (*Receipt, error) {
	if !bytes.Equal(p.Digest, sub.Digest) {
		return nil, refuse(ErrConflict, "the idempotency key was used for another request")
	}
	return &Receipt{
		Task: TaskKey{sub.Instance, sub.Task}, Row: sub.Row, Cursor: sub.Cursor,
		Duplicate: true, door: sub.Door, key: sub.Key,
	}, nil
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
			return late(receipt)
		}
	}
	return r.waitStored(ctx, receipt)
}

// late looks once more for an answer that came with the runtime's last turn.
func late(receipt *Receipt) (Answer, error) {
	select {
	case a, ok := <-receipt.answer:
		if ok {
			return a, nil
		}
	default:
	}
	return Answer{}, ErrDraining
}

// waitStored follows a submission that was made by another call, maybe before
// the last start of the host.
func (r *Runtime) waitStored(ctx context.Context, receipt *Receipt) (Answer, error) {
	def, ok := r.definition(receipt.Task.Tenant, receipt.Task.Swarm)
	if !ok {
		return Answer{}, refuse(ErrNotFound, "swarm '%s' not found", receipt.Task.Swarm)
	}
	t, err := r.acquire(ctx, receipt.Task, def)
	if err != nil {
		return Answer{}, err
	}
	defer r.release(t)
	for {
		t.mu.Lock()
		changed := t.changed
		t.mu.Unlock()
		sub, err := r.store.Submission(ctx, receipt.Task.InstanceKey, receipt.door, receipt.key)
		if err != nil {
			return Answer{}, err
		}
		if sub.Answer > 0 {
			return r.readAnswer(ctx, receipt.Task, sub.Answer)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Answer{}, context.Cause(ctx)
		case <-r.stopped:
			return Answer{}, ErrDraining
		}
	}
}

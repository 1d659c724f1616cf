package swarm

import (
	"bytes"
	"context"
	"crypto/rand"
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
	Type       mail.Type
	Subject    string
	Body       string
	Trace      string
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
	if p.Task == "" {
		p.Task = newID()
	}
	key := TaskKey{p.Principal.Instance(p.Swarm), p.Task}
	t, err := r.acquire(ctx, key, def)
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
	if p.Entrypoint == "" {
		p.Entrypoint = def.Entrypoint
	}
	agent, ok := def.agent(p.Entrypoint)
	switch {
	case !ok:
		return nil, refuse(ErrInvalid, "entrypoint '%s' is not an agent of swarm '%s'", p.Entrypoint, p.Swarm)
	case !agent.Entrypoint:
		return nil, refuse(ErrInvalid, "agent '%s' is not an entrypoint (enable_entrypoint is false)", p.Entrypoint)
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

// accept writes a post as one step of its task.
func (r *Runtime) accept(ctx context.Context, t *live, p Post) (*Receipt, error) {
	t.commit.Lock()
	defer t.commit.Unlock()

	t.mu.Lock()
	s, sub, err := r.acceptStep(t, p)
	t.mu.Unlock()
	if err != nil {
		return nil, err
	}
	first, err := r.store.Accept(ctx, s.Step, sub)
	if errors.Is(err, ErrDuplicate) {
		return duplicate(p, first)
	}
	if err != nil {
		return nil, err
	}
	receipt := &Receipt{
		Task: t.key, Row: sub.Row, Cursor: sub.Cursor,
		door: sub.Door, key: sub.Key, answer: make(chan Answer, 1),
	}
	t.mu.Lock()
	t.waiters[sub.Row] = append(t.waiters[sub.Row], receipt.answer)
	t.apply(s)
	t.mu.Unlock()
	r.applied(t)
	return receipt, nil
}

func (r *Runtime) acceptStep(t *live, p Post) (*step, Submission, error) {
	if p.MustExist && !t.exists {
		return nil, Submission{}, refuse(ErrNotFound, "task '%s' not found", p.Task)
	}
	if err := r.room(t); err != nil {
		return nil, Submission{}, err
	}
	s := t.begin(r.now())
	s.open(p)
	row := s.postRow(p)
	sub := Submission{
		Instance: t.key.InstanceKey, Door: p.Door, Key: p.Key, Digest: p.Digest,
		Task: t.key.Task, Expires: s.now.Add(keyLife),
	}
	if sub.Key == "" {
		sub.Key = row.Message.ID
	}
	sub.Row = s.insert(row)
	sub.Cursor = s.Task.Cursor
	s.Task.Posts = append(s.Task.Posts, Pending{Row: sub.Row, Door: sub.Door, Key: sub.Key})
	return s, sub, nil
}

// room checks the limits of an instance that a post counts against.
func (r *Runtime) room(t *live) error {
	key, limits := t.key.InstanceKey, t.def.Limits
	r.mu.Lock()
	defer r.mu.Unlock()
	load, known := r.instances[key]
	switch {
	case !known && limits.Instances > 0 && len(r.instances) >= limits.Instances:
		return refuse(ErrLimit, "the swarm has %d instances, its limit; raise [limits] instances", limits.Instances)
	case limits.Queue > 0 && load.waiting >= limits.Queue:
		return refuse(ErrLimit, "%d messages are waiting in this instance, its limit; raise [limits] queue or try later", load.waiting)
	}
	return nil
}

// open makes the task's record ready for a post: new, running or reopened.
func (s *step) open(p Post) {
	if !s.live.exists {
		s.create(p)
	} else if s.Task.State != StateRunning {
		s.reopen()
	}
	admin := p.Principal.Role == mail.RoleAdmin
	if p.MaxSteps > 0 {
		s.Task.MaxSteps = override(p.MaxSteps, s.def.Limits.TaskMessages, admin)
	}
	if p.Timeout > 0 {
		s.Task.Timeout = override(p.Timeout, s.def.Limits.TaskTimeout, admin)
	}
	s.Task.Entrypoint = p.Entrypoint
	s.Task.Deadline = time.Time{}
	if s.Task.Timeout > 0 {
		s.Task.Deadline = s.now.Add(s.Task.Timeout)
	}
}

// override is what a caller's limit becomes: the operator's is a ceiling for
// all but admins. A ceiling of 0 is none.
func override[T int | time.Duration](want, ceiling T, admin bool) T {
	if ceiling > 0 && !admin {
		return min(want, ceiling)
	}
	return want
}

func (s *step) create(p Post) {
	nonce := make([]byte, 16)
	rand.Read(nonce)
	owner := mail.Owner{Role: p.Principal.Role, ID: mail.PrincipalID(p.Principal.Tenant, p.Principal.ID), Swarm: p.Swarm}
	s.Task = Task{
		Key: s.live.key, Owner: owner.String(), Contributors: []string{owner.String()},
		State: StateRunning, Created: s.now, Updated: s.now, Nonce: nonce,
		MaxSteps: s.def.Limits.TaskMessages, Timeout: s.def.Limits.TaskTimeout,
		History: map[string]int64{},
	}
}

func (s *step) postRow(p Post) Row {
	m := compose(p.Type, envelope{
		task: s.Task.Key.Task, swarm: s.def.Name, id: newID(), payloadID: newID(), at: s.now,
		sender:     mail.Address{Type: mail.AddressType(p.Principal.Role), Name: p.Principal.ID},
		recipients: []mail.Address{{Type: mail.Agent, Name: p.Entrypoint}},
		subject:    p.Subject, body: p.Body,
	})
	return Row{
		Agent: p.Entrypoint, Tier: mail.Tier(m), Message: m, Trace: p.Trace,
		Origin: Origin{Door: p.Door, Realm: p.Principal.Tenant, Principal: string(p.Principal.Role) + ":" + p.Principal.ID},
		Cause:  m.ID,
	}
}

// Wait returns the answer to a post. It ends with ctx's cause, or with
// ErrDraining when the host stops first; the task then goes on at the next
// start.
func (r *Runtime) Wait(ctx context.Context, receipt *Receipt) (Answer, error) {
	if receipt.answer != nil {
		select {
		case a := <-receipt.answer:
			return a, nil
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
	case a := <-receipt.answer:
		return a, nil
	default:
		return Answer{}, ErrDraining
	}
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

package swarm

import (
	"cmp"
	"context"
	"errors"
	"time"

	"skep/spec/mail"
)

// Incoming is a wrapper that another swarm has handed in.
type Incoming struct {
	// Principal is whose key the swarm has shown, of role swarm; Peer is the swarm
	// that it speaks for.
	Principal Principal
	Peer      string
	// Swarm is the local one.
	Swarm string
	// Back continues a task that is here; else one may begin.
	Back    bool
	Wrapper mail.Interswarm
	// Hops counts the swarms between this one and the task's owner.
	Hops  int
	Trace string
}

// Received says that a wrapper is durable.
type Received struct {
	Task TaskKey
	// Runner is the owner string of the instance that has it.
	Runner    string
	Duplicate bool
}

// MaxHops bounds how often a task is handed on from swarm to swarm.
const MaxHops = 4

// peerKeyLife is how long a wrapper that comes again is known: longer than any
// host tries to deliver it.
const peerKeyLife = 31 * 24 * time.Hour

// doorPeer is the door of other swarms.
const doorPeer = "peer"

// Receive accepts a wrapper: when it returns, the message survives any crash. One
// that was accepted before changes nothing. Refusals are of kind ErrInvalid,
// ErrForbidden, ErrNotFound, ErrConflict, ErrLimit and ErrDraining.
func (r *Runtime) Receive(ctx context.Context, in Incoming) (Received, error) {
	if r.draining.Load() {
		return Received{}, ErrDraining
	}
	def, ok := r.definition(in.Principal.Tenant, in.Swarm)
	if !ok {
		return Received{}, refuse(ErrNotFound, "swarm '%s' not found", in.Swarm)
	}
	runner, err := in.runner()
	if err != nil {
		return Received{}, err
	}
	key := TaskKey{runner.instance(in.Swarm), in.Wrapper.Payload.TaskID}
	if got, err := r.receivedBefore(ctx, key, in, runner); got.Duplicate || err != nil {
		return got, err
	}
	if err := in.check(def); err != nil {
		return Received{}, err
	}
	t, err := r.acquire(ctx, key, def)
	if err != nil {
		return Received{}, err
	}
	defer r.release(t)
	got, err := r.acceptFromPeer(ctx, t, in, runner)
	if err == nil {
		r.kick(t)
	}
	return got, err
}

// runner is the local instance that a wrapper is for.
type runner struct {
	tenant string
	owner  mail.Owner
}

func (o runner) instance(swarm string) InstanceKey {
	_, id, _ := mail.SplitPrincipal(o.owner.ID) // it was made by that, or read
	return Principal{Tenant: o.tenant, Role: o.owner.Role, ID: id}.Instance(swarm)
}

// runner finds the instance: for a task that begins that of the caller, else the
// first of ours among the contributors (contract 1.3).
func (in Incoming) runner() (runner, error) {
	if !in.Back {
		id := mail.PrincipalID(in.Principal.Tenant, in.Principal.ID)
		return runner{in.Principal.Tenant, mail.Owner{Role: mail.RoleSwarm, ID: id, Swarm: in.Swarm}}, nil
	}
	for _, c := range in.Wrapper.TaskContributors {
		if swarmOf(c) != in.Swarm {
			continue
		}
		o, err := mail.ParseOwner(c)
		if err != nil {
			return runner{}, refuse(ErrInvalid, "parameter 'task_contributors' is malformed: %v", err)
		}
		tenant, _, err := mail.SplitPrincipal(o.ID)
		if err != nil {
			return runner{}, refuse(ErrInvalid, "parameter 'task_contributors' is malformed: %v", err)
		}
		return runner{tenant, o}, nil
	}
	return runner{}, refuse(ErrNotFound, "no mail instance found for task with id %s", in.Wrapper.Payload.TaskID)
}

// key names a wrapper among all that come by the door.
func (in Incoming) key() string { return in.Peer + "\x1f" + in.Wrapper.MessageID }

func (r *Runtime) receivedBefore(ctx context.Context, key TaskKey, in Incoming, o runner) (Received, error) {
	sub, err := r.store.Submission(ctx, key.InstanceKey, doorPeer, in.key())
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !sub.Expires.After(r.now()):
		return Received{}, nil
	case err != nil:
		return Received{}, err
	}
	return in.again(key, sub, o)
}

// again answers a wrapper that has come before.
func (in Incoming) again(key TaskKey, first Submission, o runner) (Received, error) {
	if first.Task != key.Task {
		return Received{}, refuse(ErrConflict, "message_id '%s' was used in another task", in.Wrapper.MessageID)
	}
	return Received{Task: key, Runner: o.owner.String(), Duplicate: true}, nil
}

// check looks at what does not depend on the task.
func (in Incoming) check(def *Definition) error {
	p := in.Wrapper.Payload
	_, from, _ := mail.ParseAddr(p.Sender.Name)
	switch {
	case !def.Interswarm:
		return refuse(ErrInvalid, "swarm '%s' takes no mail from other swarms", def.Name)
	case !mail.ValidTaskID(p.TaskID):
		return refuse(ErrInvalid, "task_id must be 1 to 256 printable characters")
	case in.Hops > MaxHops:
		return refuse(ErrInvalid, "the task was handed on %d times, at most %d", in.Hops, MaxHops)
	case !in.Back && swarmOf(in.Wrapper.TaskOwner) == def.Name:
		return refuse(ErrInvalid, "the task belongs to swarm '%s': send it to /interswarm/back", def.Name)
	case p.Sender.Type != mail.Agent && p.Sender.Type != mail.System:
		return refuse(ErrInvalid, "the sender must be an agent of swarm '%s'", in.Peer)
	case p.Sender.Type == mail.Agent && from != "" && from != in.Peer,
		p.Sender.Type == mail.System && p.Sender.Name != in.Peer:
		return refuse(ErrForbidden, "invalid role: the sender is not of the swarm that calls")
	case p.Sender.Type == mail.Agent && mail.Reserved(p.Subject) && p.Subject != mail.SubjectTaskComplete:
		return refuse(ErrInvalid, "subject must not begin with '::', which is reserved for the system")
	case len(p.Subject) > MaxSubject:
		return refuse(ErrInvalid, "subject has %d bytes, at most %d", len(p.Subject), MaxSubject)
	case len(p.Body) > MaxBody:
		return refuse(ErrInvalid, "body has %d bytes, at most %d", len(p.Body), MaxBody)
	}
	return nil
}

// belongs says why a wrapper must not touch the task. The caller holds t.commit.
func (in Incoming) belongs(t *live) error {
	owner, id := in.Wrapper.TaskOwner, in.Wrapper.Payload.TaskID
	switch {
	case !t.exists && in.Back:
		return refuse(ErrNotFound, "task is not running: there is no task '%s'", id)
	case !t.exists:
		return nil
	case !in.Back && t.rec.Owner != owner:
		return refuse(ErrConflict, "another task '%s' of swarm '%s' is here already", id, in.Peer)
	case t.rec.Owner != owner, !t.rec.knows(in.Peer):
		return refuse(ErrForbidden, "invalid role: swarm '%s' takes no part in task '%s'", in.Peer, id)
	}
	return nil
}

// acceptFromPeer writes a wrapper as one step of its task.
func (r *Runtime) acceptFromPeer(ctx context.Context, t *live, in Incoming, o runner) (Received, error) {
	t.commit.Lock()
	defer t.commit.Unlock()
	r.renew(t)
	if err := in.belongs(t); err != nil {
		return Received{}, err
	}
	names, err := in.recipients(t.def)
	if err != nil {
		return Received{}, err
	}
	message, err := in.message(t.def.Name)
	if err != nil {
		return Received{}, err
	}
	free, err := r.reserve(ctx, t, Post{})
	if err != nil {
		return Received{}, err
	}
	defer free()
	t.mu.Lock()
	s := t.begin(r.now())
	s.arrive(in, o, message, names)
	t.mu.Unlock()
	sub := Submission{
		Instance: t.key.InstanceKey, Door: doorPeer, Key: in.key(), Task: t.key.Task,
		Row: cmp.Or(s.firstRow(), 1), Cursor: s.Task.Cursor, Answer: s.Task.Cursor, Expires: s.now.Add(peerKeyLife),
	}
	first, err := r.store.Accept(ctx, s.Step, sub)
	if errors.Is(err, ErrDuplicate) {
		return in.again(t.key, first, o)
	}
	if err != nil {
		return Received{}, err
	}
	t.mu.Lock()
	t.apply(s)
	t.mu.Unlock()
	r.applied(t)
	return Received{Task: t.key, Runner: o.owner.String()}, nil
}

// firstRow is the number of the first row that the step adds, 0 for none.
func (s *step) firstRow() int64 {
	if len(s.Insert) == 0 {
		return 0
	}
	return s.Insert[0].N
}

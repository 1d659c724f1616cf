package swarm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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

// errOtherOwner says that the caller's instance has a task of that id for another
// owner.
var errOtherOwner = fmt.Errorf("another owner: %w", ErrConflict)

// doorPeer is the door of other swarms.
const doorPeer = "peer"

// Receive accepts a wrapper: when it returns, the message survives any crash. One
// that was accepted before changes nothing. Refusals are of kind ErrInvalid,
// ErrForbidden, ErrNotFound, ErrConflict, ErrLimit and ErrDraining.
func (r *Runtime) Receive(ctx context.Context, in Incoming) (Received, error) {
	if r.draining.Load() {
		return Received{}, ErrDraining
	}
	runner, err := in.runner()
	if err != nil {
		return Received{}, err
	}
	def, ok := r.definition(runner.tenant, in.Swarm)
	switch {
	case !ok && in.Back:
		return Received{}, in.noTask() // which tenants there are is nobody's business
	case !ok:
		return Received{}, refuse(ErrNotFound, "swarm '%s' not found", in.Swarm)
	}
	got, err := r.receiveFor(ctx, in, def, runner)
	if errors.Is(err, errOtherOwner) {
		return r.receiveFor(ctx, in, def, in.apart())
	}
	return got, err
}

func (r *Runtime) receiveFor(ctx context.Context, in Incoming, def *Definition, runner runner) (Received, error) {
	key := TaskKey{runner.instance(in.Swarm), in.Wrapper.Payload.TaskID}
	if got, err := r.receivedBefore(ctx, key, in, runner); got.Duplicate || err != nil {
		return got, err
	}
	if err := in.check(def); err != nil {
		return Received{}, err
	}
	if err := r.wayBack(ctx, key.InstanceKey, in); err != nil {
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

// apart is the instance for a task whose id the caller's instance has for another
// owner: one id of two users of a peer is two tasks (G-40).
func (in Incoming) apart() runner {
	sum := sha256.Sum256([]byte(in.Wrapper.TaskOwner))
	id := in.Principal.ID + apartMark + hex.EncodeToString(sum[:16])
	return runner{in.Principal.Tenant, mail.Owner{
		Role: mail.RoleSwarm, ID: mail.PrincipalID(in.Principal.Tenant, id), Swarm: in.Swarm,
	}}
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

// digest tells a wrapper that comes again from another one under its id. What may
// differ from one attempt to the next is not in it: token, metadata, contributors,
// timestamp and routing_info. Accepted wrappers are kept by it: its form must stay.
func (in Incoming) digest() []byte {
	w := in.Wrapper
	p := w.Payload
	// Strings always encode.
	raw, _ := json.Marshal([]any{w.Type, w.TaskOwner, p.TaskID, p.ID, p.Sender, p.Recipients, p.Subject, p.Body, p.SenderSwarm, p.RecipientSwarms})
	sum := sha256.Sum256(raw)
	return sum[:]
}

// again answers a wrapper that has come before. An older host has kept no digest.
func (in Incoming) again(key TaskKey, first Submission, o runner) (Received, error) {
	if first.Task != key.Task {
		return Received{}, refuse(ErrConflict, "message_id '%s' was used in another task", in.Wrapper.MessageID)
	}
	if first.Digest != nil && !bytes.Equal(first.Digest, in.digest()) {
		return Received{}, refuse(ErrConflict, "message_id '%s' was used for another message", in.Wrapper.MessageID)
	}
	return Received{Task: key, Runner: o.owner.String(), Duplicate: true}, nil
}

// acceptFromPeer writes a wrapper as one step of its task.
func (r *Runtime) acceptFromPeer(ctx context.Context, t *live, in Incoming, o runner) (Received, error) {
	t.commit.Lock()
	defer t.commit.Unlock()
	r.renew(t)
	if err := in.belongs(t); err != nil {
		return Received{}, err
	}
	names, message, err := in.local(t.def)
	if err != nil {
		return Received{}, err
	}
	if err := t.stashes(in, names); err != nil {
		return Received{}, err
	}
	if err := r.guestRoom(t, in); err != nil {
		return Received{}, err
	}
	free, err := r.reserve(ctx, t, Post{To: names})
	if err != nil {
		return Received{}, err
	}
	defer free()
	t.mu.Lock()
	s := t.begin(r.now())
	s.arrive(in, o, message, names)
	s.settle()
	t.mu.Unlock()
	sub := Submission{
		Instance: t.key.InstanceKey, Door: doorPeer, Key: in.key(), Digest: in.digest(), Task: t.key.Task,
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

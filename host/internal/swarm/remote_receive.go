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

// Incoming is a wrapper from another swarm.
type Incoming struct {
	// Principal is the owner of the key, of role swarm; Peer is the swarm that it
	// represents.
	Principal Principal
	Peer      string
	// AnyTenant is set when the operator has given the key to the peer: it answers the
	// tasks of all tenants, and else those of its principal's.
	AnyTenant bool
	// Swarm is the local swarm.
	Swarm string
	// Back means that the wrapper continues a local task; else it may begin one.
	Back    bool
	Wrapper mail.Interswarm
	// Hops counts the swarms between this one and the task's owner.
	Hops  int
	Trace string
}

// IncomingReceipt confirms that a wrapper is durable.
type IncomingReceipt struct {
	Task TaskKey
	// Runner is the owner string of the instance that runs the task.
	Runner    string
	Duplicate bool
}

// MaxHops bounds the swarms through which a task is passed.
const MaxHops = 4

// peerKeyLife is the time for which a repeated wrapper is recognised: longer than any
// host tries to deliver it.
const peerKeyLife = 31 * 24 * time.Hour

// errOtherOwner means that the caller's instance has a task with that id for another
// owner.
var errOtherOwner = fmt.Errorf("another owner: %w", ErrConflict)

// doorPeer is the door of other swarms.
const doorPeer = "peer"

// Receive accepts a wrapper: when it returns, the message survives any crash. A
// repeated wrapper changes nothing. Refusals are of kind ErrInvalid, ErrForbidden,
// ErrNotFound, ErrConflict, ErrLimit and ErrDraining.
func (r *Runtime) Receive(ctx context.Context, in Incoming) (IncomingReceipt, error) {
	if r.draining.Load() {
		return IncomingReceipt{}, ErrDraining
	}
	if in.Peer == "" || mail.SwarmNamesCollide(in.Peer, in.Swarm) {
		return IncomingReceipt{}, refuse(ErrForbidden, "a key of role agent speaks for another swarm than '%s', which is this host's own, and for none whose name differs from it in case and punctuation only", in.Swarm)
	}
	runner, err := in.findRunner()
	if err != nil {
		return IncomingReceipt{}, err
	}
	def, ok := r.definition(runner.tenant, in.Swarm)
	switch {
	case !ok && in.Back:
		return IncomingReceipt{}, in.unknownTask() // the existence of a tenant is not disclosed
	case !ok:
		return IncomingReceipt{}, refuse(ErrNotFound, "swarm '%s' not found", in.Swarm)
	}
	got, err := r.receiveFor(ctx, in, def, runner)
	if errors.Is(err, errOtherOwner) {
		return r.receiveFor(ctx, in, def, in.separateRunner())
	}
	return got, err
}

func (r *Runtime) receiveFor(ctx context.Context, in Incoming, def *Definition, runner runner) (IncomingReceipt, error) {
	key := TaskKey{runner.instance(in.Swarm), in.Wrapper.Payload.TaskID}
	if got, err := r.findDuplicate(ctx, key, in, runner); got.Duplicate || err != nil {
		return got, err
	}
	if err := in.checkWrapper(def); err != nil {
		return IncomingReceipt{}, err
	}
	if err := r.checkReturnRoute(ctx, key.InstanceKey, in); err != nil {
		return IncomingReceipt{}, err
	}
	t, err := r.acquireTask(ctx, key, def)
	if err != nil {
		return IncomingReceipt{}, err
	}
	defer r.releaseTask(t)
	got, err := r.acceptFromPeer(ctx, t, in, runner)
	if err == nil {
		r.claimTurns(t)
	}
	return got, err
}

// runner is the local instance for a wrapper.
type runner struct {
	tenant string
	owner  mail.Owner
}

func (o runner) instance(swarm string) InstanceKey {
	_, id, _ := mail.SplitPrincipal(o.owner.ID) // the id was encoded or validated before
	return Principal{Tenant: o.tenant, Role: o.owner.Role, ID: id}.Instance(swarm)
}

// findRunner finds the instance: for a new task the caller's, else the first of the
// local swarm among the contributors, which must be of a tenant that the caller answers.
func (in Incoming) findRunner() (runner, error) {
	if !in.Back {
		id := mail.PrincipalID(in.Principal.Tenant, in.Principal.ID)
		return runner{in.Principal.Tenant, mail.Owner{Role: mail.RoleSwarm, ID: id, Swarm: in.Swarm}}, nil
	}
	for _, c := range in.Wrapper.TaskContributors {
		if ownerSwarm(c) != in.Swarm {
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
		if tenant != in.Principal.Tenant && !in.AnyTenant {
			return runner{}, in.unknownTask() // its existence is not disclosed
		}
		return runner{tenant, o}, nil
	}
	return runner{}, refuse(ErrNotFound, "no mail instance found for task with id %s", in.Wrapper.Payload.TaskID)
}

// separateRunner is the instance for a task whose id the caller's instance has for
// another owner: one id of two users of a peer is two tasks (G-40).
func (in Incoming) separateRunner() runner {
	sum := sha256.Sum256([]byte(in.Wrapper.TaskOwner))
	id := in.Principal.ID + runnerSeparator + hex.EncodeToString(sum[:16])
	return runner{in.Principal.Tenant, mail.Owner{
		Role: mail.RoleSwarm, ID: mail.PrincipalID(in.Principal.Tenant, id), Swarm: in.Swarm,
	}}
}

// submissionKey identifies a wrapper among all submissions of the door.
func (in Incoming) submissionKey() string { return in.Peer + "\x1f" + in.Wrapper.MessageID }

func (r *Runtime) findDuplicate(ctx context.Context, key TaskKey, in Incoming, o runner) (IncomingReceipt, error) {
	sub, err := r.store.Submission(ctx, key.InstanceKey, doorPeer, in.submissionKey())
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !sub.Expires.After(r.now()):
		return IncomingReceipt{}, nil
	case err != nil:
		return IncomingReceipt{}, err
	}
	return in.duplicateReceipt(key, sub, o)
}

// digest distinguishes a repeated wrapper from another one under its id. It excludes
// what may differ between attempts: token, metadata, contributors, timestamp and
// routing_info. It is stored with accepted wrappers, so its form must not change.
func (in Incoming) digest() []byte {
	w := in.Wrapper
	p := w.Payload
	// Strings always encode.
	raw, _ := json.Marshal([]any{w.Type, w.TaskOwner, p.TaskID, p.ID, p.Sender, p.Recipients, p.Subject, p.Body, p.SenderSwarm, p.RecipientSwarms})
	sum := sha256.Sum256(raw)
	return sum[:]
}

// duplicateReceipt answers a repeated wrapper. An older host has stored no digest.
func (in Incoming) duplicateReceipt(key TaskKey, first Submission, o runner) (IncomingReceipt, error) {
	if first.Task != key.Task {
		return IncomingReceipt{}, refuse(ErrConflict, "message_id '%s' was used in another task", in.Wrapper.MessageID)
	}
	if first.Digest != nil && !bytes.Equal(first.Digest, in.digest()) {
		return IncomingReceipt{}, refuse(ErrConflict, "message_id '%s' was used for another message", in.Wrapper.MessageID)
	}
	return IncomingReceipt{Task: key, Runner: o.owner.String(), Duplicate: true}, nil
}

// acceptFromPeer writes a wrapper as one mutation of its task.
func (r *Runtime) acceptFromPeer(ctx context.Context, t *activeTask, in Incoming, o runner) (IncomingReceipt, error) {
	t.commit.Lock()
	defer t.commit.Unlock()
	r.refreshDefinition(t)
	if err := in.checkTask(t); err != nil {
		return IncomingReceipt{}, err
	}
	names, message, err := in.localMessage(t.def)
	if err != nil {
		return IncomingReceipt{}, err
	}
	if err := t.checkStashLimits(in, names); err != nil {
		return IncomingReceipt{}, err
	}
	if err := r.checkPeerTaskLimit(t, in); err != nil {
		return IncomingReceipt{}, err
	}
	part, err := r.reserveQuota(ctx, t, Post{To: names})
	if err != nil {
		return IncomingReceipt{}, err
	}
	defer part.release()
	t.mu.Lock()
	mut := t.beginMutation(r.now())
	mut.applyIncoming(in, o, message, names)
	mut.applyStallRule()
	t.mu.Unlock()
	sub := Submission{
		Instance: t.key.InstanceKey, Door: doorPeer, Key: in.submissionKey(), Digest: in.digest(), Task: t.key.Task,
		Row: cmp.Or(mut.firstInserted(), 1), Cursor: mut.Task.Cursor, Answer: mut.Task.Cursor, Expires: mut.now.Add(peerKeyLife),
	}
	first, err := r.acceptMutation(ctx, mut.Mutation, sub)
	if errors.Is(err, ErrDuplicate) {
		return in.duplicateReceipt(t.key, first, o)
	}
	if err != nil {
		return IncomingReceipt{}, err
	}
	t.mu.Lock()
	t.applyMutation(mut)
	t.mu.Unlock()
	r.afterAccept(t, part)
	return IncomingReceipt{Task: t.key, Runner: o.owner.String()}, nil
}

// firstInserted is the number of the first row that the mutation inserts, 0 for none.
func (mut *mutationBuilder) firstInserted() int64 {
	if len(mut.Insert) == 0 {
		return 0
	}
	return mut.Insert[0].N
}

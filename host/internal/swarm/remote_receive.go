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
	"slices"
	"strings"
	"time"

	"skep/spec/mail"
)

// Incoming is a wrapper from another swarm, or from a realm through a gateway.
type Incoming struct {
	// Door is a gateway's, see [GatewayDoor]; else it is that of other swarms. A gateway's
	// messages reach the agents that are exposed through it, and each of its requests and
	// interrupts opens an exchange.
	Door string
	// Digest distinguishes a repeat from another message under its id; nil for the
	// wrapper's own.
	Digest []byte
	// Brief ends the task as completed as soon as it owes and asks nothing; the caller's
	// next message reopens it.
	Brief bool
	// Reply sends the answer of an exchange through the outbox as well.
	Reply bool
	// Note is kept with the exchange, at most MaxNote bytes, and Keep is how long its
	// answer can be read; zero is a day.
	Note []byte
	Keep time.Duration
	// Asks bounds the caller's tasks that run, besides [limits] peer_tasks; 0 does not.
	Asks int
	// Blobs are stored with the message, for the agents of the task to read.
	Blobs []Blob
	// Principal is the owner of the key, of role swarm; Peer is the swarm that it
	// represents.
	Principal Principal
	Peer      string
	// AnyTenant is set when the operator has given the key to the peer: it answers the
	// tasks of all tenants, and else those of its principal's.
	AnyTenant bool
	// Swarm is the local swarm.
	Swarm string
	// Back means that the wrapper continues a local task; else it may begin one. NewTask
	// means that it begins one, whose id Receive makes.
	Back    bool
	NewTask bool
	Wrapper mail.Interswarm
	// Hops counts the swarms between this one and the task's owner.
	Hops  int
	Trace Trace
}

// IncomingReceipt confirms that a wrapper is durable.
type IncomingReceipt struct {
	// Task is the task. A repeat through a gateway may name another one: the first counts.
	Task TaskKey
	// Runner is the owner string of the instance that runs the task.
	Runner    string
	Duplicate bool
	// Exchanges are those of a gateway's message, one for each recipient. Unknown are the
	// recipients that are no agents, or not exposed; if all are, the message is refused.
	Exchanges []*Receipt
	Unknown   []string
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

// keySeparator stands between the parts of a submission's key.
const keySeparator = "\x1f"

// gateway is the name of the gateway, empty for another swarm.
func (in Incoming) gateway() string {
	name, ok := strings.CutPrefix(in.Door, GatewayDoor)
	if !ok {
		return ""
	}
	return name
}

// asks reports whether the wrapper wants an answer.
func (in Incoming) asks() bool {
	return in.Wrapper.Type == mail.Request || in.Wrapper.Type == mail.Interrupt
}

// opensExchange reports whether the wrapper opens exchanges.
func (in Incoming) opensExchange() bool {
	return isGateway(in.Door) && in.asks() && !mail.Reserved(in.Wrapper.Payload.Subject)
}

// Receive accepts a wrapper: when it returns, the message survives any crash. A
// repeated wrapper changes nothing. Refusals are of kind ErrInvalid, ErrForbidden,
// ErrNotFound, ErrConflict, ErrLimit and ErrDraining.
func (r *Runtime) Receive(ctx context.Context, in Incoming) (IncomingReceipt, error) {
	if r.draining.Load() {
		return IncomingReceipt{}, ErrDraining
	}
	if !isGateway(in.Door) {
		in.Door = doorPeer
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
	if !in.NewTask {
		if got, err := r.findDuplicate(ctx, key, in, runner); got.Duplicate || err != nil {
			return got, err
		}
		return r.receiveTo(ctx, key, in, def, runner, r.acquireTask)
	}
	// Only the write looks for a repeat of a wrapper that begins a task: it holds nothing up.
	id, err := r.newTaskID(key.InstanceKey)
	if err != nil {
		return IncomingReceipt{}, err
	}
	key.Task, in.Wrapper.Payload.TaskID = id, id
	got, err := r.receiveTo(ctx, key, in, def, runner, r.acquireNewTask)
	if err != nil { // a repeat is answered though a new wrapper is refused
		if first, findErr := r.findDuplicate(ctx, key, in, runner); first.Duplicate || findErr != nil {
			return first, findErr
		}
	}
	return got, err
}

// receiveTo accepts a wrapper for a task, which acquire gets.
func (r *Runtime) receiveTo(ctx context.Context, key TaskKey, in Incoming, def *Definition, runner runner, acquire acquireFunc) (IncomingReceipt, error) {
	if err := in.checkWrapper(def); err != nil {
		return IncomingReceipt{}, err
	}
	if err := r.checkReturnRoute(ctx, key.InstanceKey, in); err != nil {
		return IncomingReceipt{}, err
	}
	t, err := acquire(ctx, key, def)
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

// submissionKey identifies a wrapper among all submissions of the door. The exchanges of
// further recipients add their names.
func (in Incoming) submissionKey() string { return RemoteKey(in.Peer, in.Wrapper.MessageID) }

// RemoteKey is the key of the submission of another swarm's, or a realm's, message.
func RemoteKey(peer, message string) string { return peer + keySeparator + message }

func (r *Runtime) findDuplicate(ctx context.Context, key TaskKey, in Incoming, o runner) (IncomingReceipt, error) {
	sub, err := r.store.Submission(ctx, key.InstanceKey, in.Door, in.submissionKey())
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !sub.Expires.After(r.now()):
		return IncomingReceipt{}, nil
	case err != nil:
		return IncomingReceipt{}, err
	}
	return r.duplicateReceipt(ctx, key, in, sub, o)
}

// digest distinguishes a repeated wrapper from another one under its id. It excludes
// what may differ between attempts: token, metadata, contributors, timestamp and
// routing_info. It is stored with accepted wrappers, so its form must not change.
func (in Incoming) digest() []byte {
	if in.Digest != nil {
		return in.Digest
	}
	w := in.Wrapper
	p := w.Payload
	// Strings always encode.
	raw, _ := json.Marshal([]any{w.Type, w.TaskOwner, p.TaskID, p.ID, p.Sender, p.Recipients, p.Subject, p.Body, p.SenderSwarm, p.RecipientSwarms})
	sum := sha256.Sum256(raw)
	return sum[:]
}

// idName is what the sender of a message calls its id: each protocol of a gateway has a
// name of its own.
func (in Incoming) idName() string {
	if isGateway(in.Door) {
		return "the id"
	}
	return "message_id"
}

// duplicateReceipt answers a repeated wrapper, and shows it to the readers of its task. An
// older host has stored no digest.
func (r *Runtime) duplicateReceipt(ctx context.Context, key TaskKey, in Incoming, first Submission, o runner) (IncomingReceipt, error) {
	if isGateway(in.Door) {
		key.Task = first.Task
	}
	if first.Task != key.Task {
		return IncomingReceipt{}, refuse(ErrConflict, "%s '%s' was used in another task", in.idName(), in.Wrapper.MessageID)
	}
	if first.Digest != nil && !bytes.Equal(first.Digest, in.digest()) {
		return IncomingReceipt{}, refuse(ErrConflict, "%s '%s' was used for another message", in.idName(), in.Wrapper.MessageID)
	}
	r.showRepeat(key, in.Door, in.Wrapper.MessageID)
	again := IncomingReceipt{Task: key, Runner: o.owner.String(), Duplicate: true}
	if !in.opensExchange() {
		return again, nil
	}
	subs, err := r.findExchanges(ctx, in, first)
	for _, sub := range subs {
		receipt := newReceipt(sub)
		receipt.Duplicate = true
		again.Exchanges = append(again.Exchanges, receipt)
	}
	return again, err
}

// findExchanges finds the exchanges of a repeated message; first is one of them.
func (r *Runtime) findExchanges(ctx context.Context, in Incoming, first Submission) ([]Submission, error) {
	list := []Submission{first}
	for _, to := range in.Wrapper.Payload.Recipients {
		name, _, err := mail.ParseAddr(to.Name)
		if err != nil || slices.ContainsFunc(list, func(s Submission) bool { return s.Agent == name }) {
			continue
		}
		sub, err := r.store.Submission(ctx, first.Instance, in.Door, in.submissionKey()+keySeparator+name)
		switch {
		case err == nil:
			list = append(list, sub)
		case !errors.Is(err, ErrNotFound):
			return nil, err
		}
	}
	return list, nil
}

// acceptFromPeer writes a wrapper as one mutation of its task.
func (r *Runtime) acceptFromPeer(ctx context.Context, t *activeTask, in Incoming, o runner) (IncomingReceipt, error) {
	t.commit.Lock()
	defer t.commit.Unlock()
	if err := t.checkHere(); err != nil {
		return IncomingReceipt{}, err
	}
	r.refreshDefinition(t)
	message, names, unknown, err := t.checkIncoming(in)
	if err != nil {
		return IncomingReceipt{}, err
	}
	part, err := r.reserveQuota(ctx, t, Post{To: names, Blobs: in.Blobs})
	if err != nil {
		return IncomingReceipt{}, err
	}
	defer part.release()
	if err := r.reservePeerTask(t, in, part); err != nil {
		return IncomingReceipt{}, err
	}
	token, err := r.acquireHostToken(ctx, t.key.InstanceKey)
	if err != nil {
		return IncomingReceipt{}, err
	}
	defer token.release()
	t.mu.Lock()
	mut := t.beginMutation(r.now())
	mut.Blobs, mut.Encoded = in.Blobs, token.release
	mut.applyIncoming(in, o, message, names)
	mut.applyStallRule()
	t.mu.Unlock()
	subs := mut.takeSubmissions(in)
	mut.Admission = part.admission
	first, err := r.acceptMutation(ctx, mut.build(), subs[0])
	if errors.Is(err, ErrDuplicate) {
		return r.duplicateReceipt(ctx, t.key, in, first, o)
	}
	if err != nil {
		return IncomingReceipt{}, err
	}
	got := IncomingReceipt{Task: t.key, Runner: o.owner.String(), Unknown: unknown}
	t.mu.Lock()
	if in.opensExchange() {
		for _, sub := range subs {
			got.Exchanges = append(got.Exchanges, t.addReceipt(sub))
		}
	}
	change := r.applyMutation(t, mut, part)
	t.mu.Unlock()
	r.afterCommit(t)
	r.observer.Committed(change)
	return got, nil
}

// takeSubmissions returns the submissions of a wrapper: its exchanges, the first of which
// leaves the mutation, else one that is answered.
func (mut *mutationBuilder) takeSubmissions(in Incoming) []Submission {
	if all := mut.Submissions; len(all) > 0 {
		mut.Submissions = all[1:]
		return all
	}
	return []Submission{{
		Instance: mut.Task.Key.InstanceKey, Door: in.Door, Key: in.submissionKey(), Digest: in.digest(), Task: mut.Task.Key.Task,
		Row: cmp.Or(mut.firstInserted(), 1), Cursor: mut.Task.Cursor, Answer: mut.Task.Cursor, Note: in.Note, Expires: mut.now.Add(peerKeyLife),
	}}
}

// firstInserted is the number of the first row that the mutation inserts, 0 for none.
func (mut *mutationBuilder) firstInserted() int64 {
	if len(mut.Insert) == 0 {
		return 0
	}
	return mut.Insert[0].N
}

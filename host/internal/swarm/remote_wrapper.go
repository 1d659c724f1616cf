package swarm

import (
	"context"
	"slices"

	"skep/spec/mail"
)

// checkWrapper checks everything that does not depend on the task. rest has refused some
// of it already, with the status and text of the reference; the runtime relies on no
// caller for it.
func (in Incoming) checkWrapper(def *Definition) error {
	p := in.Wrapper.Payload
	switch {
	case !def.Interswarm && !isGateway(in.Door):
		return refuse(ErrInvalid, "swarm '%s' takes no mail from other swarms", def.Name)
	case !mail.ValidTaskID(p.TaskID):
		return refuse(ErrInvalid, "task_id must be 1 to 256 printable characters")
	case in.Hops > MaxHops:
		return refuse(ErrInvalid, "the task was handed on %d times, at most %d", in.Hops, MaxHops)
	case !in.Back && ownerSwarm(in.Wrapper.TaskOwner) == def.Name:
		return refuse(ErrInvalid, "the task belongs to swarm '%s': send it to /interswarm/back", def.Name)
	case len(p.Subject) > MaxSubject:
		return refuse(ErrInvalid, "subject has %d bytes, at most %d", len(p.Subject), MaxSubject)
	case len(p.Body) > MaxBody:
		return refuse(ErrInvalid, "body has %d bytes, at most %d", len(p.Body), MaxBody)
	}
	if isGateway(in.Door) {
		if err := checkGatewayMessage(in.Wrapper.MessageID, in.Note); err != nil {
			return err
		}
	}
	if err := in.checkSenderAddress(); err != nil || !in.bringsResults() {
		return err
	}
	_, err := in.parseResults()
	return err
}

// systemSubjects are the subjects under which another swarm's system writes.
var systemSubjects = []string{
	mail.SubjectTaskComplete, mail.SubjectAgentError, mail.SubjectRouterError, mail.SubjectInvalidRecipient,
	mail.SubjectBreakpointToolCall, mail.SubjectActionCompleteBcast, mail.SubjectRuntimeError, mail.SubjectTaskTimeout,
	mail.SubjectTaskError, mail.SubjectTaskCancelled, mail.SubjectRunLoopError, mail.SubjectRunLoopCancelled, mail.SubjectShutdownRequested,
}

// checkSenderAddress checks the sender and whether it may use the subject.
func (in Incoming) checkSenderAddress() error {
	p := in.Wrapper.Payload
	switch p.Sender.Type {
	case mail.Agent:
		_, from, err := mail.ParseAddr(p.Sender.Name)
		switch {
		case err != nil:
			return refuse(ErrInvalid, "sender '%s': %v", p.Sender.Name, err)
		case from != "" && from != in.Peer:
			return refuse(ErrForbidden, "invalid role: the sender is not of the swarm that calls")
		case mail.Reserved(p.Subject) && p.Subject != mail.SubjectTaskComplete:
			return refuse(ErrInvalid, "subject must not begin with '::', which is reserved for the system")
		}
	case mail.System:
		switch {
		case p.Sender.Name != in.Peer:
			return refuse(ErrForbidden, "invalid role: the sender is not of the swarm that calls")
		case !slices.Contains(systemSubjects, p.Subject):
			return refuse(ErrInvalid, "the system of swarm '%s' cannot write with the subject '%s'", in.Peer, p.Subject)
		}
	default:
		return refuse(ErrInvalid, "the sender must be an agent of swarm '%s'", in.Peer)
	}
	return nil
}

// mayBeginTask reports whether a task may begin with the wrapper. A report on a task,
// or its end, needs an existing one.
func (in Incoming) mayBeginTask() bool { return !in.Back && !mail.Reserved(in.Wrapper.Payload.Subject) }

// checkTask refuses a wrapper that must not change the task. The caller holds t.commit.
func (in Incoming) checkTask(t *activeTask) error {
	owner, id := in.Wrapper.TaskOwner, in.Wrapper.Payload.TaskID
	switch {
	case !t.exists && !in.mayBeginTask():
		return in.unknownTask()
	case !t.exists:
		return nil
	case !in.Back && t.rec.Owner != owner:
		return refuse(errOtherOwner, "another task '%s' of swarm '%s' is here already", id, in.Peer)
	case t.rec.Owner != owner, !t.rec.involves(in.Peer):
		return refuse(ErrForbidden, "invalid role: swarm '%s' takes no part in task '%s'", in.Peer, id)
	case in.bringsResults() && in.Peer != t.rec.Caller:
		return refuse(ErrForbidden, "invalid role: swarm '%s' was not asked to answer the calls of task '%s'", in.Peer, id)
	}
	return nil
}

// checkReturnRoute refuses a request that could not be answered, because the host
// cannot reach the requesting swarm.
func (r *Runtime) checkReturnRoute(ctx context.Context, key InstanceKey, in Incoming) error {
	if !in.asks() || in.opensExchange() {
		return nil
	}
	err := r.forward.Check(ctx, key, in.Peer)
	if err == nil {
		return nil
	}
	r.log.Warn("a swarm asks that cannot be answered", "peer", in.Peer, "task_id", in.Wrapper.Payload.TaskID, "err", err)
	return refuse(ErrInvalid, "swarm '%s' has no way back to '%s': add [peers.%s] with base_url and auth_token to its swarm.toml, or run `skep peer add %s` there",
		in.Swarm, in.Peer, in.Peer, in.Peer)
}

// unknownTask refuses a wrapper that continues an unknown task.
func (in Incoming) unknownTask() error {
	return refuse(ErrNotFound, "task is not running: there is no task '%s'", in.Wrapper.Payload.TaskID)
}

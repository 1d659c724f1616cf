package swarm

import (
	"slices"

	"skep/spec/mail"
)

// check looks at what does not depend on the task.
func (in Incoming) check(def *Definition) error {
	p := in.Wrapper.Payload
	switch {
	case !def.Interswarm:
		return refuse(ErrInvalid, "swarm '%s' takes no mail from other swarms", def.Name)
	case !mail.ValidTaskID(p.TaskID):
		return refuse(ErrInvalid, "task_id must be 1 to 256 printable characters")
	case in.Hops > MaxHops:
		return refuse(ErrInvalid, "the task was handed on %d times, at most %d", in.Hops, MaxHops)
	case !in.Back && swarmOf(in.Wrapper.TaskOwner) == def.Name:
		return refuse(ErrInvalid, "the task belongs to swarm '%s': send it to /interswarm/back", def.Name)
	case len(p.Subject) > MaxSubject:
		return refuse(ErrInvalid, "subject has %d bytes, at most %d", len(p.Subject), MaxSubject)
	case len(p.Body) > MaxBody:
		return refuse(ErrInvalid, "body has %d bytes, at most %d", len(p.Body), MaxBody)
	}
	if err := in.checkSender(); err != nil || !in.answersCalls() {
		return err
	}
	_, err := in.results()
	return err
}

// systemSays are the subjects under which the system of another swarm writes.
var systemSays = []string{
	mail.SubjectTaskComplete, mail.SubjectAgentError, mail.SubjectRouterError, mail.SubjectInvalidRecipient,
	mail.SubjectBreakpointToolCall, mail.SubjectActionCompleteBcast, mail.SubjectRuntimeError, mail.SubjectTaskTimeout,
	mail.SubjectTaskError, mail.SubjectTaskCancelled, mail.SubjectRunLoopError, mail.SubjectRunLoopCancelled, mail.SubjectShutdownRequested,
}

// checkSender looks at who is said to write, and whether that one may write so.
func (in Incoming) checkSender() error {
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
		case !slices.Contains(systemSays, p.Subject):
			return refuse(ErrInvalid, "the system of swarm '%s' cannot write with the subject '%s'", in.Peer, p.Subject)
		}
	default:
		return refuse(ErrInvalid, "the sender must be an agent of swarm '%s'", in.Peer)
	}
	return nil
}

// begins reports whether a task may begin with the wrapper: one that reports on a
// task, or ends it, means one that is there.
func (in Incoming) begins() bool { return !in.Back && !mail.Reserved(in.Wrapper.Payload.Subject) }

// belongs says why a wrapper must not touch the task. The caller holds t.commit.
func (in Incoming) belongs(t *live) error {
	owner, id := in.Wrapper.TaskOwner, in.Wrapper.Payload.TaskID
	switch {
	case !t.exists && !in.begins():
		return in.noTask()
	case !t.exists:
		return nil
	case !in.Back && t.rec.Owner != owner:
		return refuse(errOtherOwner, "another task '%s' of swarm '%s' is here already", id, in.Peer)
	case t.rec.Owner != owner, !t.rec.knows(in.Peer):
		return refuse(ErrForbidden, "invalid role: swarm '%s' takes no part in task '%s'", in.Peer, id)
	case in.answersCalls() && in.Peer != t.rec.Caller:
		return refuse(ErrForbidden, "invalid role: swarm '%s' was not asked to answer the calls of task '%s'", in.Peer, id)
	}
	return nil
}

// noTask answers a wrapper that continues a task which is not here.
func (in Incoming) noTask() error {
	return refuse(ErrNotFound, "task is not running: there is no task '%s'", in.Wrapper.Payload.TaskID)
}

package swarm

import (
	"fmt"

	"skep/spec/mail"
)

// Bounds of what an ended or paused task keeps of one other swarm: its messages with
// the notices to it, and their bytes.
const (
	maxStashed      = 100
	maxStashedBytes = 4 * MaxBody
)

// reopensTask reports whether a message reopens an ended task: a message from the
// caller's or the owner's swarm that is not a response.
func (in Incoming) reopensTask(t Task) bool {
	return t.worksFor(in.Peer) && in.Wrapper.Type != mail.Response && !mail.Reserved(in.Wrapper.Payload.Subject)
}

// refuseLateRequest answers a request to an ended task, whose agents read no mail.
func (mut *mutationBuilder) refuseLateRequest(m mail.Message) {
	mut.logMessage(m, map[string]any{"recipient": m.Payload.Recipient().Name})
	mut.sendRemoteReply(OpenRequest{ID: m.Payload.ID, From: m.Payload.Sender.Name}, mail.SubjectRouterError,
		fmt.Sprintf("the task has ended in swarm '%s' (%s): no agent reads what comes now", mut.def.Name, mut.Task.State))
}

// checkStashLimits refuses more messages of a swarm for a task in which no turn runs.
// The caller holds t.commit.
func (t *activeTask) checkStashLimits(in Incoming, names []string) error {
	if !t.exists || t.rec.State == StateRunning && !t.rec.Grace || t.rec.State.Ended() && in.reopensTask(t.rec) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	rows, bytes := t.stashUsage(in.Peer)
	brings := in.Wrapper.Payload
	switch {
	case mail.Reserved(brings.Subject):
		return nil // it is handled without a row
	case rows+len(names) > maxStashed:
		return refuse(ErrLimit, "task '%s' is %s and keeps %d messages of swarm '%s', at most %d", t.key.Task, t.rec.State, rows, in.Peer, maxStashed)
	case bytes+len(names)*(len(brings.Subject)+len(brings.Body)) > maxStashedBytes:
		return refuse(ErrLimit, "task '%s' is %s and keeps %d bytes of swarm '%s', at most %d", t.key.Task, t.rec.State, bytes, in.Peer, maxStashedBytes)
	case t.def.Limits.Queue > 0 && len(t.stash)+len(names) > t.def.Limits.Queue:
		return refuseAt("[limits] queue", "task '%s' is %s and keeps %d messages; raise [limits] queue", t.key.Task, t.rec.State, len(t.stash))
	}
	return nil
}

// stashUsage counts the stashed rows of a swarm, their bytes, and the notices to it.
func (t *activeTask) stashUsage(swarm string) (rows, bytes int) {
	for i := range t.stash { // by index: a row is large
		p := &t.stash[i].Message.Payload
		if door := t.stash[i].Origin.Door; (door == doorPeer || isGateway(door)) && p.SenderSwarm == swarm {
			rows, bytes = rows+1, bytes+len(p.Subject)+len(p.Body)
		}
	}
	for _, msg := range t.outbox {
		if msg.Peer == swarm && msg.Notice {
			rows++
		}
	}
	return rows, bytes
}

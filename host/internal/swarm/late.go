package swarm

import (
	"fmt"

	"skep/spec/mail"
)

// Bounds of what an ended or paused task keeps of one other swarm: its messages, with
// the words that wait to be sent to it, and their bytes.
const (
	maxStashed      = 100
	maxStashedBytes = 4 * MaxBody
)

// reopens reports whether a message makes an ended task run again: one of the swarm
// that called, or of the owner's, unless it only answers.
func (in Incoming) reopens(t Task) bool {
	return t.worksFor(in.Peer) && in.Wrapper.Type != mail.Response && !mail.Reserved(in.Wrapper.Payload.Subject)
}

// tooLate answers a request that nobody will read.
func (s *step) tooLate(m mail.Message) {
	s.newMessage(m, map[string]any{"recipient": m.Payload.Recipient().Name})
	s.replyAbroad(OpenRequest{ID: m.Payload.ID, From: m.Payload.Sender.Name}, mail.SubjectRouterError,
		fmt.Sprintf("the task has ended in swarm '%s' (%s): no agent reads what comes now", s.def.Name, s.Task.State))
}

// stashes says why a task in which no turn runs takes no more from a swarm. The
// caller holds t.commit.
func (t *live) stashes(in Incoming, names []string) error {
	if !t.exists || t.rec.State == StateRunning && !t.rec.Grace || t.rec.State.Ended() && in.reopens(t.rec) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	rows, bytes := t.stashOf(in.Peer)
	brings := in.Wrapper.Payload
	switch {
	case mail.Reserved(brings.Subject):
		return nil // nobody is sent that
	case rows+len(names) > maxStashed:
		return refuse(ErrLimit, "task '%s' is %s and keeps %d messages of swarm '%s', at most %d", t.key.Task, t.rec.State, rows, in.Peer, maxStashed)
	case bytes+len(names)*(len(brings.Subject)+len(brings.Body)) > maxStashedBytes:
		return refuse(ErrLimit, "task '%s' is %s and keeps %d bytes of swarm '%s', at most %d", t.key.Task, t.rec.State, bytes, in.Peer, maxStashedBytes)
	case t.def.Limits.Queue > 0 && len(t.stash)+len(names) > t.def.Limits.Queue:
		return refuse(ErrLimit, "task '%s' is %s and keeps %d messages; raise [limits] queue", t.key.Task, t.rec.State, len(t.stash))
	}
	return nil
}

// stashOf is what the task keeps of a swarm, and has to tell it.
func (t *live) stashOf(swarm string) (rows, bytes int) {
	for i := range t.stash { // a row is large
		p := &t.stash[i].Message.Payload
		if t.stash[i].Origin.Door == doorPeer && p.SenderSwarm == swarm {
			rows, bytes = rows+1, bytes+len(p.Subject)+len(p.Body)
		}
	}
	for _, l := range t.letters {
		if l.Peer == swarm && l.Notice {
			rows++
		}
	}
	return rows, bytes
}

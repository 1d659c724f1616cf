package swarm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"skep/spec/mail"
)

// An exchange is a submission that came through a gateway. It is held: it stays open,
// over pauses too, until a commit answers it, and its answer can then be read for a time.
// The exchanges of one realm's messages are requests of its agents, and posts, at once.

// GatewayDoor begins the doors of gateways; the gateway's name follows.
const GatewayDoor = "gateway:"

// MaxNote is the longest note of a submission, MaxMessageID the longest id of a
// gateway's message, in bytes.
const (
	MaxNote      = 4 << 10
	MaxMessageID = 1 << 10
)

// checkGatewayMessage refuses an id or a note that is too long.
func checkGatewayMessage(id string, note []byte) error {
	switch {
	case len(id) > MaxMessageID:
		return refuse(ErrInvalid, "the message id has %d bytes, at most %d", len(id), MaxMessageID)
	case len(note) > MaxNote:
		return refuse(ErrInvalid, "the note has %d bytes, at most %d", len(note), MaxNote)
	}
	return nil
}

// checkRequests refuses a request that could not be recorded, or whose exchange could not
// be answered: a failure would then reach nobody. The caller holds t.commit.
func (t *activeTask) checkRequests(in Incoming, names []string) error {
	open := len(t.rec.Requests)
	switch {
	case isGateway(in.Door) && in.bringsResults():
		results, _ := in.parseResults() // checkWrapper has parsed them
		return results.checkTask(t.rec)
	case !in.asks() || mail.Reserved(in.Wrapper.Payload.Subject):
		return nil
	case in.opensExchange() && t.exists && t.rec.State.Ended() && !in.reopensTask(t.rec):
		return refuse(ErrConflict, "task '%s' has ended (%s): no agent reads what comes now", t.key.Task, t.rec.State)
	case open >= maxOpenRequests, in.opensExchange() && open+len(names) > maxOpenRequests:
		return &Refusal{Kind: ErrLimit, Retry: retrySoon, Text: fmt.Sprintf("task '%s' has %d open requests, at most %d: wait for answers", t.key.Task, open, maxOpenRequests)}
	}
	return nil
}

// isGateway reports whether a door is a gateway's.
func isGateway(door string) bool { return strings.HasPrefix(door, GatewayDoor) }

// Exchange names a held submission in the record of its task.
type Exchange struct {
	Door string `json:"door"`
	Key  string `json:"key"`
	// Row is the row of the message.
	Row int64 `json:"row"`
	// Reply means that the answer also leaves through the outbox.
	Reply bool `json:"reply,omitempty"`
}

func (x Exchange) post() PendingPost {
	return PendingPost{Row: x.Row, Door: x.Door, Key: x.Key, Held: true}
}

// makeHeld makes a gateway's submission a held one.
func (s *Submission) makeHeld(now time.Time, keep time.Duration, note []byte) {
	if keep <= 0 {
		keep = keyLife
	}
	s.Accepted, s.Keep, s.Note, s.Expires = now, keep, note, now.Add(peerKeyLife)
}

// pendingPost is the submission among those of its task that wait.
func (s Submission) pendingPost() PendingPost {
	return PendingPost{Row: s.Row, Door: s.Door, Key: s.Key, Held: s.Keep > 0}
}

// openExchange opens the exchange of a realm's message to one agent, whose row was
// inserted last.
func (mut *mutationBuilder) openExchange(in Incoming, m mail.Message, agent string, row int64) {
	s := Submission{
		Instance: mut.Task.Key.InstanceKey, Door: in.Door, Key: in.submissionKey(), Digest: in.digest(),
		Task: mut.Task.Key.Task, Row: row, Cursor: mut.Task.Cursor, Agent: agent,
	}
	if len(mut.Submissions) > 0 {
		s.Key += keySeparator + agent
	}
	s.makeHeld(mut.now, in.Keep, in.Note)
	mut.Submissions = append(mut.Submissions, s)
	mut.postChanges.added = append(mut.postChanges.added, s.pendingPost())
	mut.Task.Requests = append(mut.Task.Requests, OpenRequest{
		ID: m.Payload.ID, From: m.Payload.Sender.Name, To: agent,
		Exchange: &Exchange{Door: s.Door, Key: s.Key, Row: row, Reply: in.Reply},
	})
}

// findExchange returns the index of the open request of an exchange, by its id and the
// agents, -1 for none.
func (t Task) findExchange(id, from, to string) int {
	return slices.IndexFunc(t.Requests, func(r OpenRequest) bool {
		return r.Exchange != nil && r.ID == id && r.From == from && r.To == to
	})
}

// requestOf returns the index of the open request of a held post, -1 for a user's.
func (t Task) requestOf(p PendingPost) int {
	return slices.IndexFunc(t.Requests, func(r OpenRequest) bool { return r.Exchange != nil && r.Exchange.post() == p })
}

// questionOf names the exchange in which an agent writes to a realm: the one of the turn's
// message, else the agent's oldest, else the realm's oldest. It is empty for none.
func (t Task) questionOf(turn *Turn, realm string) string {
	m := turn.row.Message
	if i := t.findExchange(m.Payload.ID, m.Payload.Sender.Name, turn.agent.Name); i >= 0 && t.Requests[i].isFrom(realm) {
		return t.Requests[i].Exchange.Key
	}
	key := ""
	for _, r := range t.Requests {
		switch {
		case r.Exchange == nil || !r.isFrom(realm):
		case r.To == turn.agent.Name:
			return r.Exchange.Key
		case key == "":
			key = r.Exchange.Key
		}
	}
	return key
}

// exchangeOf is the row of the exchange on which a turn works: its own where a gateway
// brought the message, else the oldest that its agent has begun and not answered. It is 0
// for none. A reply of a realm belongs to the exchange in which the agent has asked.
func (t *activeTask) exchangeOf(row Row) int64 {
	if isGateway(row.Origin.Door) && row.Message.Type != mail.Response {
		return row.N
	}
	oldest := int64(0)
	for _, p := range t.openPosts.handled {
		if p.Held && (oldest == 0 || p.Row < oldest) && t.rec.mayAnswer(p, row.Agent) {
			oldest = p.Row
		}
	}
	return oldest
}

// mayAnswer reports whether an agent may be the one that a held post asks. A user's post
// is no request in the record: any agent may work on it.
func (t Task) mayAnswer(p PendingPost, agent string) bool {
	i := t.requestOf(p)
	return i < 0 || t.Requests[i].To == agent
}

// hasGatewayReader reports whether the caller of a gateway may read the task's output.
func (t Task) hasGatewayReader() bool {
	return t.Door != "" || slices.ContainsFunc(t.Requests, func(r OpenRequest) bool { return r.Exchange != nil })
}

// hasRemoteRequest reports whether the task asks, or owes an answer to, an agent that is
// not here. A request between agents here is not answered when nothing runs.
func (t Task) hasRemoteRequest() bool {
	return slices.ContainsFunc(t.Requests, func(r OpenRequest) bool { return isRemote(r.To) || isRemote(r.From) })
}

// isFrom reports whether an agent of a swarm made the request.
func (r OpenRequest) isFrom(swarm string) bool {
	_, from, _ := mail.ParseAddr(r.From)
	return from == swarm
}

// answerExchange answers an exchange with the message whose event was logged last, and
// closes its request.
func (mut *mutationBuilder) answerExchange(i int, m mail.Message) {
	x := mut.Task.Requests[i].Exchange
	mut.Task.Requests = slices.Delete(mut.Task.Requests, i, i+1)
	mut.answerHeld(x.post(), answerInMessage(m, mut.Task.Cursor))
}

// answerHeld gives an answer to one held post.
func (mut *mutationBuilder) answerHeld(p PendingPost, a Answer) {
	mut.postChanges.closed = append(mut.postChanges.closed, p)
	mut.resolvePost(p, a)
}

// respondInExchange answers the exchange that an agent's response is for, and reports
// whether there is one. Without a reply address the response leaves by no outbox.
func (mut *mutationBuilder) respondInExchange(agent string, msg OutboxMessage) bool {
	p := msg.Message.Payload
	i := mut.Task.findExchange(p.ID, p.Recipient().Name, agent)
	if i < 0 || msg.Message.Type != mail.Response {
		return false
	}
	if x := mut.Task.Requests[i].Exchange; x.Reply {
		msg.Answers = x.Key
		mut.addToOutbox(msg)
	} else {
		mut.logMessage(msg.Message, map[string]any{"recipient": p.Recipient().Name})
	}
	mut.answerExchange(i, msg.Message)
	return true
}

// failExchange answers an exchange in the system's name.
func (mut *mutationBuilder) failExchange(i int, subject, text string) {
	r := mut.Task.Requests[i]
	msg := mut.newNotice(r.sender(), "", r.ID, subject, text)
	if r.Exchange.Reply {
		msg.Answers = r.Exchange.Key
		mut.addToOutbox(msg)
	}
	mut.logMessage(msg.Message, map[string]any{"recipient": r.From})
	mut.answerExchange(i, msg.Message)
}

// closeExchange closes the request of a post that the end of its task, or a completion,
// answers. It also sends the answer where the realm wants it.
func (mut *mutationBuilder) closeExchange(p PendingPost, a Answer) {
	i := mut.Task.requestOf(p)
	if i < 0 {
		return // a user's
	}
	r := mut.Task.Requests[i]
	mut.Task.Requests = slices.Delete(mut.Task.Requests, i, i+1)
	by := a.Caller
	switch _, swarm, _ := mail.ParseAddr(by); {
	case !r.Exchange.Reply, swarm != "" && r.isFrom(swarm): // a realm gets no notice of its own dismissal
		return
	case swarm != "":
		by = mut.Task.Entrypoint // an agent of another swarm does not speak for this one
	}
	msg := mut.newNotice(r.sender(), by, r.ID, a.Subject, a.Body)
	msg.Answers = r.Exchange.Key
	mut.addToOutbox(msg)
}

// answerInMessage is the answer that a response carries.
func answerInMessage(m mail.Message, cursor int64) Answer {
	p := m.Payload
	a := Answer{State: StateCompleted, Subject: p.Subject, Body: p.Body, Caller: p.Sender.Name, Cursor: cursor, At: m.Time()}
	if p.Sender.Type == mail.System {
		a.State, a.Caller = StateFailed, ""
		if p.Subject == mail.SubjectTaskCancelled {
			a.State = StateCancelled
		}
	}
	return a
}

// ExchangeAnswer returns the answer of an exchange in an event: an agent's response, the
// system's in its place, a completion, or the end of the task.
func (e Event) ExchangeAnswer() (Answer, bool) {
	if m, ok := e.message(); ok {
		return answerInMessage(m, e.Seq), m.Type == mail.Response
	}
	return e.Answer()
}

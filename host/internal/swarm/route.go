package swarm

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// Routing resolves the recipients of a message: of a post by routePost, of an agent's
// call by Turn.resolveTarget and Turn.resolveTargets, of another swarm's wrapper by
// Incoming.localRecipients. Only recipients that pass the checks get a row or an outbox
// message.

// recipientSet are the recipients of a message: local agents by name, and groups in
// other swarms.
type recipientSet struct {
	local  []string
	remote []remoteGroup
}

// remoteGroup are the recipients in one other swarm, by their whole addresses.
type remoteGroup struct {
	swarm string
	names []string
}

// size counts the messages for the recipients.
func (a recipientSet) size() int { return len(a.local) + len(a.remote) }

// first is the whole address of one recipient.
func (a recipientSet) first() string {
	if len(a.local) > 0 {
		return a.local[0]
	}
	return a.remote[0].names[0]
}

func (a *recipientSet) addAgent(name, swarm string) {
	if swarm == "" {
		if !slices.Contains(a.local, name) {
			a.local = append(a.local, name)
		}
		return
	}
	address := mail.FormatAddr(name, swarm)
	i := slices.IndexFunc(a.remote, func(p remoteGroup) bool { return p.swarm == swarm })
	if i < 0 {
		a.remote = append(a.remote, remoteGroup{swarm, []string{address}})
	} else if !slices.Contains(a.remote[i].names, address) {
		a.remote[i].names = append(a.remote[i].names, address)
	}
}

// checkRemoteTarget refuses a message to an agent of another swarm. Only that swarm can
// check that the agent exists.
func (t *Turn) checkRemoteTarget(e *stagedCall, name, swarm string) *abi.Error {
	if t.replay != nil {
		return nil
	}
	target := mail.FormatAddr(name, swarm)
	err := t.rt.forward.Check(context.Background(), t.task.key.InstanceKey, swarm)
	switch {
	case name == mail.ReservedAll:
		return t.complain(e, abi.CodeInvalid, "target",
			"error sending message: %q is no agent; name those of another swarm one by one", target)
	case err != nil:
		return t.complain(e, abi.CodeUnavailable, "router", "cannot send to %q: %v", target, err)
	case !t.agent.Interswarm:
		return t.complain(e, abi.CodeDenied, "interswarm",
			"agent %q may not write to other swarms; set [agents.%s] enable_interswarm = true", t.agent.Name, t.agent.Name)
	}
	return nil
}

// routePost resolves the recipients of a post, before anything of it is stored, and sets
// its entrypoint: the first local recipient, or the swarm's. The caller holds t.commit.
func (r *Runtime) routePost(ctx context.Context, t *activeTask, p *Post) (to recipientSet, err error) {
	targets := p.To
	if len(targets) == 0 {
		name := p.Entrypoint
		if name == "" {
			name = t.def.Entrypoint
		}
		targets = []string{name}
	}
	if len(p.To) > maxTargets {
		return to, refuse(ErrInvalid, "the message has %d targets, at most %d", len(p.To), maxTargets)
	}
	for _, target := range targets {
		name, swarm, err := mail.ParseAddr(target)
		switch {
		case err != nil && len(p.To) > 0:
			return to, refuse(ErrInvalid, "target '%s': %v", target, err)
		case len(p.To) == 0, swarm == "", swarm == t.def.Name:
			if len(p.To) == 0 {
				name = target
			}
			to.addAgent(name, "")
			err = t.checkEntrypoint(name)
		default:
			to.addAgent(name, swarm)
			err = r.checkRemotePost(ctx, t, name, swarm)
		}
		if err != nil {
			return to, err
		}
	}
	p.Entrypoint = t.def.Entrypoint
	if len(to.local) > 0 {
		p.Entrypoint = to.local[0]
	}
	return to, t.checkPostLimits(*p, to)
}

// dispatchPost adds a post's messages for all recipients. It returns the number under
// which the post is answered.
func (mut *mutationBuilder) dispatchPost(p Post, to recipientSet) int64 {
	last := len(to.local) - 1
	if len(to.remote) > 0 {
		last = -1
	}
	var n int64
	for i, name := range to.local {
		row := mut.newPostRow(p, name)
		row.SharedPost = i != last
		n = mut.insertRow(row)
		if row.SharedPost {
			mut.postChanges.added = append(mut.postChanges.added, PendingPost{Row: n})
		}
	}
	if len(to.remote) > 0 {
		n = mut.nextNumber()
	}
	for _, group := range to.remote {
		for _, name := range group.names {
			mut.addRemoteRequest(p, n, name, group.swarm)
		}
	}
	return n
}

// checkPostLimits refuses a post with too many recipients.
func (t *activeTask) checkPostLimits(p Post, to recipientSet) error {
	asked := 0
	for _, group := range to.remote {
		asked += len(group.names)
	}
	switch {
	case p.Type != mail.Broadcast && asked+len(to.local) > 1:
		return refuse(ErrInvalid, "only a broadcast may have several targets")
	case asked > 0 && len(t.rec.Requests)+asked > maxOpenRequests:
		return refuse(ErrLimit, "task '%s' has %d open requests, at most %d", t.key.Task, len(t.rec.Requests), maxOpenRequests)
	}
	return nil
}

// checkEntrypoint refuses a post to a local agent that is no entrypoint.
func (t *activeTask) checkEntrypoint(name string) error {
	agent, ok := t.def.agent(name)
	switch {
	case !ok:
		return refuseFor("agent", "entrypoint '%s' is not an agent of swarm '%s'", name, t.def.Name)
	case !agent.Entrypoint:
		return refuseFor("agent", "agent '%s' is not an entrypoint (enable_entrypoint is false)", name)
	}
	return nil
}

// checkRemotePost refuses a post to another swarm's agent. It is sent in the name of
// the entrypoint, and may go where the entrypoint may write to.
func (r *Runtime) checkRemotePost(ctx context.Context, t *activeTask, name, swarm string) error {
	target, speaker := mail.FormatAddr(name, swarm), t.def.Entrypoint
	agent, _ := t.def.agent(speaker)
	switch {
	case !t.def.Interswarm:
		return refuse(ErrInvalid, "swarm '%s' sends no mail to other swarms; set [swarm] enable_interswarm = true", t.def.Name)
	case name == mail.ReservedAll:
		return refuse(ErrInvalid, "target '%s' is no agent; name those of another swarm one by one", target)
	case !agent.Interswarm:
		return refuseFor("comm_targets", "entrypoint '%s' may not write to other swarms; set [agents.%s] enable_interswarm = true", speaker, speaker)
	}
	if err := r.forward.Check(ctx, t.key.InstanceKey, swarm); err != nil {
		return refuse(ErrNotFound, "cannot send to '%s': %v", target, err)
	}
	if !agent.mayWrite(t.def.Name, name, swarm) {
		return refuseFor("comm_targets", "entrypoint '%s' may not write to '%s'; add it to [agents.%s] comm_targets", speaker, target, speaker)
	}
	return nil
}

// resolveTarget resolves the target of a request, response or interrupt. comm_targets
// is checked here, and the refusal also goes to the agent's mail.
func (t *Turn) resolveTarget(e *stagedCall, target string) (to recipientSet, fault *abi.Error) {
	if t.isAll(target) {
		return t.resolveTargets(e, nil)
	}
	name, swarm, fault := t.parseTarget(e, target)
	if fault != nil {
		return to, fault
	}
	local := swarm == "" || swarm == t.def.Name
	if !local && e.call.Name == mail.ToolSendResponse && t.answersExchange(e, name, swarm) {
		// The caller of a gateway is answered without a way to him, or leave to write.
		to.addAgent(name, swarm)
		return to, nil
	}
	if t.replay == nil && !t.mayWrite(name, swarm) {
		if local && name == t.userID() {
			return to, t.complain(e, abi.CodeInvalid, "user",
				"agents do not write to the user; the finish message of task_complete reaches %q", name)
		}
		return to, t.refuseTarget(e, target)
	}
	fault = t.addRecipient(e, &to, name, swarm)
	return to, fault
}

// parseTarget reads the address of a target.
func (t *Turn) parseTarget(e *stagedCall, target string) (name, swarm string, fault *abi.Error) {
	name, swarm, err := mail.ParseAddr(target)
	if err != nil {
		return "", "", t.complain(e, abi.CodeInvalid, "target", "error sending message: target %q: %v", target, err)
	}
	return name, swarm, nil
}

// refuseTarget refuses a target that comm_targets does not list.
func (t *Turn) refuseTarget(e *stagedCall, target string) *abi.Error {
	return t.complain(e, abi.CodeDenied, "comm_targets",
		"agent %q may not write to %q; add it to [agents.%s] comm_targets", t.agent.Name, target, t.agent.Name)
}

// resolveTargets resolves a list of targets; an empty list is all agents.
func (t *Turn) resolveTargets(e *stagedCall, targets []string) (to recipientSet, fault *abi.Error) {
	if len(targets) == 0 || slices.ContainsFunc(targets, t.isAll) {
		to.local = t.def.otherAgents(t.agent.Name)
		if len(to.local) == 0 && t.replay == nil {
			return to, t.complain(e, abi.CodeNotFound, "audience",
				"error sending message: swarm %q has no other agent", t.def.Name)
		}
	}
	for _, target := range targets {
		if t.isAll(target) {
			continue
		}
		name, swarm, fault := t.parseTarget(e, target)
		if fault != nil {
			return to, fault
		}
		if swarm != "" && swarm != t.def.Name && t.replay == nil && !t.mayWrite(name, swarm) {
			return to, t.refuseTarget(e, target)
		}
		if fault := t.addRecipient(e, &to, name, swarm); fault != nil {
			return to, fault
		}
	}
	return to, nil
}

// isAll reports whether a target is all agents of this swarm, in either form.
func (t *Turn) isAll(target string) bool {
	return target == mail.ReservedAll || target == mail.FormatAddr(mail.ReservedAll, t.def.Name)
}

// addRecipient adds an agent to the recipients. The address of a local agent may
// include its swarm.
func (t *Turn) addRecipient(e *stagedCall, to *recipientSet, name, swarm string) *abi.Error {
	if swarm != "" && swarm != t.def.Name {
		to.addAgent(name, swarm)
		return t.checkRemoteTarget(e, name, swarm)
	}
	if !t.hasAgent(name) {
		return t.complain(e, abi.CodeNotFound, "agent", "there is no agent %q in swarm %q", name, t.def.Name)
	}
	to.addAgent(name, "")
	return nil
}

// hasAgent reports whether the swarm has an agent, or had it in an earlier attempt.
func (t *Turn) hasAgent(name string) bool {
	_, ok := t.def.agent(name)
	return ok || t.replay != nil
}

// mayWrite checks comm_targets. They may list a local agent bare or with its swarm
// and all agents of another swarm by a star.
func (t *Turn) mayWrite(name, swarm string) bool {
	return t.agent.mayWrite(t.def.Name, name, swarm)
}

func (a Agent) mayWrite(own, name, swarm string) bool {
	forms := []string{mail.FormatAddr(name, swarm), "*@" + swarm, "*@*"}
	if swarm == "" || swarm == own {
		forms = []string{name, mail.FormatAddr(name, own)}
	}
	return slices.ContainsFunc(a.Targets, func(x string) bool { return slices.Contains(forms, x) })
}

// mailRecord is what a turn's record keeps of a call of op mail: the request of the
// exchange that it answers.
type mailRecord struct {
	Exchange string `json:"exchange"`
}

// MailRecord is what the record keeps of the last mail call, beside its answer; nil for
// nothing.
func (t *Turn) MailRecord() json.RawMessage {
	if len(t.staged) == 0 || !t.staged[len(t.staged)-1].inExchange {
		return nil
	}
	raw, _ := json.Marshal(mailRecord{t.staged[len(t.staged)-1].closes}) // a string encodes
	return raw
}

// answersExchange reports whether a response to an agent of a realm answers an exchange,
// and notes which: the one of the turn's message, else the oldest that the turn has not
// answered yet. A repeated call answers the exchange in its record, which may have been
// answered since.
func (t *Turn) answersExchange(e *stagedCall, name, realm string) bool {
	if t.replay != nil {
		var r mailRecord
		e.inExchange = json.Unmarshal(t.replay.Ran, &r) == nil && r.Exchange != ""
		e.closes = r.Exchange
		return e.inExchange
	}
	address := mail.FormatAddr(name, realm)
	for _, r := range t.rec.Requests {
		answered := func(e stagedCall) bool { return e.inExchange && e.closes == r.ID }
		if r.Exchange == nil || r.From != address || r.To != t.agent.Name || slices.ContainsFunc(t.staged, answered) {
			continue
		}
		if !e.inExchange || r.ID == t.row.Message.Payload.ID {
			e.inExchange, e.closes = true, r.ID
		}
	}
	return e.inExchange
}

// userID is the id of the task's principal.
func (t *Turn) userID() string {
	_, id, _ := strings.Cut(t.task.key.Instance, ":")
	return id
}

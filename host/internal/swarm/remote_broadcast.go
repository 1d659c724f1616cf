package swarm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// An interswarm broadcast goes to whole swarms: one outbox message each, to the swarm's
// entrypoint.

// maxBroadcastSwarms bounds the swarms of one broadcast: a task records no more peers.
const maxBroadcastSwarms = maxPeers

// sendInterswarmBroadcast writes to the named swarms, or to all that can be reached. If
// one named swarm cannot be reached, nothing is sent.
func (t *Turn) sendInterswarmBroadcast(e *stagedCall, args toolArgs) (string, *abi.Error) {
	to, over, fault := t.broadcastTargets(e, args.Swarms)
	if fault == nil {
		fault = t.checkQuota(abi.OpMail, len(to))
	}
	if fault == nil {
		fault = t.checkStagedBytes(e, len(to)*len(args.Body))
	}
	if fault != nil {
		return "", fault
	}
	for _, address := range to {
		_, swarm, _ := mail.ParseAddr(address)
		e.outbox = append(e.outbox, t.newOutboxMessage(mail.Broadcast, "", remoteGroup{swarm, []string{address}}, args.Subject, args.Body))
	}
	e.sentTo = to
	return fmt.Sprintf("broadcast sent to %d swarms", len(to)) + over, nil
}

// checkStagedBytes refuses what exceeds the turn's staged bytes, before ids are made
// for it: a replay must make the same number of ids.
func (t *Turn) checkStagedBytes(e *stagedCall, bytes int) *abi.Error {
	if t.replay == nil && t.bytes+len(e.call.Args)+bytes > maxStagedBytes {
		return abi.Errorf(abi.CodeLimit, abi.OpMail, "staged", "a turn may send %d bytes of mail", maxStagedBytes)
	}
	return nil
}

// broadcastTargets returns the addresses of a broadcast, and a text about swarms that
// were passed over. A repeated turn writes to the addresses of the earlier attempt,
// independent of the swarms that are known now.
func (t *Turn) broadcastTargets(e *stagedCall, names []string) (to []string, over string, fault *abi.Error) {
	if t.replay != nil {
		var rsp abi.MailResponse
		_ = json.Unmarshal(t.replay.Answer, &rsp) // a fault has no answer
		return rsp.SentTo, "", nil
	}
	known := slices.DeleteFunc(t.rt.knownSwarms.List(), func(n KnownSwarm) bool { return n.Name == t.def.Name })
	if len(names) == 0 || slices.Contains(names, mail.ReservedAll) {
		return t.allSwarmTargets(e, known)
	}
	entrypoints := map[string]string{}
	for _, n := range known {
		entrypoints[n.Name] = n.Entrypoint
	}
	var no swarmRefusals
	for _, name := range names {
		address, why := t.swarmTarget(name, entrypoints[name])
		if why != nil {
			no = append(no, refusedSwarm{name, why})
		} else if !slices.Contains(to, address) {
			to = append(to, address)
		}
	}
	switch {
	case len(no) > 0:
		return nil, "", t.complain(e, no[0].Code, no[0].Reason, "broadcast not sent: %s", no)
	case len(to) > maxBroadcastSwarms:
		return nil, "", t.refuseTooManySwarms(e)
	}
	return to, "", nil
}

// allSwarmTargets returns the addresses in all known swarms, except swarms that are
// down or that the agent may not write to.
func (t *Turn) allSwarmTargets(e *stagedCall, known []KnownSwarm) (to []string, over string, fault *abi.Error) {
	passed := map[string]int{}
	for _, n := range known {
		address, why := t.swarmTarget(n.Name, n.Entrypoint)
		switch {
		case n.Down:
			passed["not active"]++
		case why != nil && why.Reason == "comm_targets":
			passed["not in comm_targets"]++
		case why != nil:
			passed["not to be reached"]++
		default:
			to = append(to, address)
		}
	}
	var list []string
	for _, why := range []string{"not active", "not in comm_targets", "not to be reached"} {
		if passed[why] > 0 {
			list = append(list, fmt.Sprintf("%d %s", passed[why], why))
		}
	}
	switch {
	case len(to) > maxBroadcastSwarms:
		return nil, "", t.refuseTooManySwarms(e)
	case len(known) == 0:
		return nil, "", t.complain(e, abi.CodeNotFound, "audience", "broadcast not sent: no other swarm is known")
	case len(to) == 0:
		return nil, "", t.complain(e, abi.CodeNotFound, "audience", "broadcast not sent: of the swarms that are known, %s", strings.Join(list, ", "))
	case len(list) > 0:
		over = "; passed over: " + strings.Join(list, ", ")
	}
	return to, over, nil
}

func (t *Turn) refuseTooManySwarms(e *stagedCall) *abi.Error {
	return t.complain(e, abi.CodeLimit, "audience", "broadcast not sent: it would reach more than %d swarms; name fewer in target_swarms", maxBroadcastSwarms)
}

// swarmTarget is the agent of a swarm that gets messages for the whole swarm: its
// entrypoint, or else the agent there that the task wrote to or heard from last.
func (t *Turn) swarmTarget(swarm, entrypoint string) (address string, fault *abi.Error) {
	no := func(code abi.Code, reason, format string, args ...any) (string, *abi.Error) {
		return "", abi.Errorf(code, abi.OpMail, reason, format, args...)
	}
	if err := mail.CheckSwarmName(swarm); err != nil {
		return no(abi.CodeInvalid, "target", "its name %v", err)
	}
	if swarm == t.def.Name {
		return no(abi.CodeInvalid, "target", "it is this swarm; send_broadcast reaches its agents")
	}
	if entrypoint == "" {
		peer, _ := t.rec.findPeer(swarm)
		entrypoint = peer.Agent
	}
	if entrypoint != "" && !t.mayWrite(entrypoint, swarm) {
		return no(abi.CodeDenied, "comm_targets", "agent %q may not write to its entrypoint; add %q or %q to [agents.%s] comm_targets",
			t.agent.Name, mail.FormatAddr(entrypoint, swarm), "*@"+swarm, t.agent.Name)
	}
	if err := t.rt.forward.Check(t.rt.lifetime, t.task.key.InstanceKey, swarm); err != nil {
		return no(abi.CodeUnavailable, "router", "%v", err)
	}
	if entrypoint == "" {
		return no(abi.CodeUnavailable, "router", "it has not told its entrypoint yet; write to an agent there by its address")
	}
	return mail.FormatAddr(entrypoint, swarm), nil
}

// refusedSwarm is a swarm that a broadcast cannot reach, with the reason.
type refusedSwarm struct {
	name string
	*abi.Error
}

type swarmRefusals []refusedSwarm

// String gives the reasons, each with its swarm.
func (r swarmRefusals) String() string {
	texts := make([]string, len(r))
	for i, no := range r {
		texts[i] = fmt.Sprintf("%.64q: %s", no.name, no.Message)
	}
	return strings.Join(texts, "; ")
}

package swarm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// A circular is a broadcast to whole swarms: one letter each, to its entrypoint
// (contract 7.4).

// maxCircular is how many swarms one reaches. A task remembers no more peers.
const maxCircular = maxPeers

// sendCircular writes to the swarms that are named, or to all that can be reached.
// Nothing leaves if one that is named gets nothing.
func (t *Turn) sendCircular(e *effect, args toolArgs) (string, *abi.Error) {
	to, over, fault := t.readers(e, args.Swarms)
	if fault == nil {
		fault = t.fits(abi.OpMail, len(to))
	}
	if fault == nil {
		fault = t.holds(e, len(to)*len(args.Body))
	}
	if fault != nil {
		return "", fault
	}
	for _, address := range to {
		_, swarm, _ := mail.ParseAddr(address)
		e.letters = append(e.letters, t.letter(mail.Broadcast, "", party{swarm, []string{address}}, args.Subject, args.Body))
	}
	e.sentTo = to
	return fmt.Sprintf("broadcast sent to %d swarms", len(to)) + over, nil
}

// holds refuses what the turn may not stage before ids are made for it: an attempt
// that comes later must make as many.
func (t *Turn) holds(e *effect, bytes int) *abi.Error {
	if t.again == nil && t.bytes+len(e.call.Args)+bytes > maxStagedBytes {
		return abi.Errorf(abi.CodeLimit, abi.OpMail, "staged", "a turn may send %d bytes of mail", maxStagedBytes)
	}
	return nil
}

// readers are the addresses that a circular goes to, and what is to be said of
// swarms that were passed over. A turn that is run again writes to those it wrote
// to, whoever is known by now.
func (t *Turn) readers(e *effect, names []string) (to []string, over string, fault *abi.Error) {
	if t.again != nil {
		var told abi.MailResponse
		_ = json.Unmarshal(t.again.Answer, &told) // there is none beside a fault
		return told.SentTo, "", nil
	}
	known := slices.DeleteFunc(t.rt.neighbours.Known(), func(n Neighbour) bool { return n.Name == t.def.Name })
	if len(names) == 0 || slices.Contains(names, mail.ReservedAll) {
		return t.everySwarm(e, known)
	}
	entrypoints := map[string]string{}
	for _, n := range known {
		entrypoints[n.Name] = n.Entrypoint
	}
	var no refusals
	for _, name := range names {
		address, why := t.reader(name, entrypoints[name])
		if why != nil {
			no = append(no, refusedSwarm{name, why})
		} else if !slices.Contains(to, address) {
			to = append(to, address)
		}
	}
	switch {
	case len(no) > 0:
		return nil, "", t.complain(e, no[0].Code, no[0].Reason, "broadcast not sent: %s", no)
	case len(to) > maxCircular:
		return nil, "", t.tooMany(e)
	}
	return to, "", nil
}

// everySwarm are the readers in all swarms that are known, but for those that are
// down or that the agent cannot write to.
func (t *Turn) everySwarm(e *effect, known []Neighbour) (to []string, over string, fault *abi.Error) {
	passed := map[string]int{}
	for _, n := range known {
		address, why := t.reader(n.Name, n.Entrypoint)
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
	case len(to) > maxCircular:
		return nil, "", t.tooMany(e)
	case len(known) == 0:
		return nil, "", t.complain(e, abi.CodeNotFound, "audience", "broadcast not sent: no other swarm is known")
	case len(to) == 0:
		return nil, "", t.complain(e, abi.CodeNotFound, "audience", "broadcast not sent: of the swarms that are known, %s", strings.Join(list, ", "))
	case len(list) > 0:
		over = "; passed over: " + strings.Join(list, ", ")
	}
	return to, over, nil
}

func (t *Turn) tooMany(e *effect) *abi.Error {
	return t.complain(e, abi.CodeLimit, "audience", "broadcast not sent: it would reach more than %d swarms; name fewer in target_swarms", maxCircular)
}

// reader is the agent of a swarm that gets what is for the whole of it: its
// entrypoint, or whom the task has last had to do with there.
func (t *Turn) reader(swarm, entrypoint string) (address string, fault *abi.Error) {
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
		peer, _ := t.rec.peer(swarm)
		entrypoint = peer.Agent
	}
	if entrypoint != "" && !t.mayWrite(entrypoint, swarm) {
		return no(abi.CodeDenied, "comm_targets", "agent %q may not write to its entrypoint; add %q or %q to [agents.%s] comm_targets",
			t.agent.Name, mail.FormatAddr(entrypoint, swarm), "*@"+swarm, t.agent.Name)
	}
	if err := t.rt.forward.Check(t.rt.life, t.task.key.InstanceKey, swarm); err != nil {
		return no(abi.CodeUnavailable, "router", "%v", err)
	}
	if entrypoint == "" {
		return no(abi.CodeUnavailable, "router", "it has not told its entrypoint yet; write to an agent there by its address")
	}
	return mail.FormatAddr(entrypoint, swarm), nil
}

// refusedSwarm is one that a circular cannot go to.
type refusedSwarm struct {
	name string
	*abi.Error
}

type refusals []refusedSwarm

// String gives the reasons, each with its swarm.
func (r refusals) String() string {
	texts := make([]string, len(r))
	for i, no := range r {
		texts[i] = fmt.Sprintf("%.64q: %s", no.name, no.Message)
	}
	return strings.Join(texts, "; ")
}

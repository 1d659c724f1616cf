package swarm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"skep/spec/mail"
)

// PeerAsk is a call at another swarm that waits for a person. The task's owner
// answers it; a swarm in between passes it on.
type PeerAsk struct {
	// Swarm has told of the call, and gets the answer.
	Swarm string `json:"swarm"`
	// Agent is the address of its agent that was asked for something.
	Agent string `json:"agent"`
	// Call names the call there, ID here, where it is unique in the task.
	Call string `json:"call"`
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// shown is the call as whoever posted sees it.
func (a PeerAsk) shown() functionCall {
	return functionCall{
		Arguments: a.Args, CallID: a.ID, Name: a.Name, Type: "function_call", ID: "fc_" + a.ID, Status: "completed", Swarm: a.Swarm,
	}
}

// maxPeerAsks bounds those of a task: its record has them.
const maxPeerAsks = 64

// Bounds of what a peer says of one call, in bytes. Its id grows by a swarm's name
// with each one that passes it on.
const (
	maxCallID   = 1024
	maxCallName = 128
)

// readCalls reads a peer's report of calls that wait for people.
func readCalls(body string) ([]functionCall, bool) {
	var calls []functionCall
	if json.Unmarshal([]byte(body), &calls) != nil || len(calls) == 0 || len(calls) > maxPeerAsks {
		return nil, false
	}
	for _, c := range calls {
		if c.CallID == "" || len(c.CallID) > maxCallID || c.Name == "" || len(c.Name) > maxCallName {
			return nil, false
		}
	}
	return calls, true
}

// size is what the call takes in the record.
func (a PeerAsk) size() int {
	return len(a.Swarm) + len(a.Agent) + len(a.Call) + len(a.ID) + len(a.Name) + len(a.Args)
}

// hearCalls keeps a peer's report and pauses the task for it (G-46). It returns
// false for one that cannot be understood or kept.
func (s *step) hearCalls(peer string, r OpenRequest, body string) bool {
	calls, ok := readCalls(body)
	if !ok {
		return false
	}
	asks := slices.Clone(s.Task.PeerAsks)
	fresh := make([]functionCall, 0, len(calls))
	for _, c := range calls {
		// Ids of calls are alike in all swarms; no local one has an @.
		id := mail.FormatAddr(c.CallID, peer)
		if slices.ContainsFunc(asks, func(a PeerAsk) bool { return a.ID == id }) {
			continue // several who asked were told of it
		}
		ask := PeerAsk{peer, r.To, c.CallID, id, c.Name, c.Arguments}
		asks, fresh = append(asks, ask), append(fresh, ask.shown())
	}
	size := 0
	for _, a := range asks {
		size += a.size()
	}
	if len(asks) > maxPeerAsks || size > MaxAsked {
		return false
	}
	s.Task.PeerAsks = asks
	if len(fresh) > 0 {
		s.handle(r.Post) // whoever waits for the request's answer is told of the pause
		s.await(r.To, fresh)
	}
	return true
}

// peerResult is what a peer is told of one call: no content means no result.
type peerResult struct {
	Call    string  `json:"call_id"`
	Content *string `json:"content,omitempty"`
}

// answerPeers sends results to the swarms whose calls which names, and forgets
// these calls.
func (s *step) answerPeers(results Results, which func(id string) bool) {
	var peers []TaskPeer
	told := map[string][]peerResult{}
	s.Task.PeerAsks = slices.DeleteFunc(s.Task.PeerAsks, func(a PeerAsk) bool {
		if !which(a.ID) {
			return false
		}
		if told[a.Swarm] == nil {
			name, _, _ := mail.ParseAddr(a.Agent)
			peers = append(peers, TaskPeer{Swarm: a.Swarm, Agent: name})
		}
		one := peerResult{Call: a.Call}
		if text, ok := results.find(a.ID); ok {
			s.told(a.Agent, a.ID, text)
			one.Content = &text
		}
		told[a.Swarm] = append(told[a.Swarm], one)
		return true
	})
	for _, p := range peers {
		s.notify(p, "", "", mail.SubjectActionCompleteBcast, encodeResults(told[p.Swarm]))
	}
}

func encodeResults(list []peerResult) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(list) // strings always encode
	return string(bytes.TrimSpace(b.Bytes()))
}

// answersCalls reports whether the wrapper brings what people have answered.
func (in Incoming) answersCalls() bool {
	p := in.Wrapper.Payload
	return p.Sender.Type == mail.System && p.Subject == mail.SubjectActionCompleteBcast
}

// results reads the answers that a wrapper brings.
func (in Incoming) results() (r Results, err error) {
	var list []peerResult
	if json.Unmarshal([]byte(in.Wrapper.Payload.Body), &list) != nil || len(list) == 0 {
		return r, refuse(ErrInvalid, "body must be a list of objects with call_id and content")
	}
	for _, one := range list {
		result := CallResult{Call: one.Call, Missing: one.Content == nil}
		if !result.Missing {
			result.Content = *one.Content
		}
		r.Each = append(r.Each, result)
	}
	return r, nil
}

// hearResults answers calls as a user does, for the swarm that was told of them. A
// call that the results do not name was told of later, and waits on.
func (s *step) hearResults(in Incoming) {
	results, _ := in.results() // they were read before
	if s.Task.State != StatePaused || !results.answers(s.Task.pendingCalls()) {
		s.event("interswarm_message_ignored", "swarm "+in.Peer+" answers what nobody waits for", map[string]any{"swarm": in.Peer})
		return
	}
	s.settleCalls(results, results.named)
	if len(s.Task.pendingCalls()) > 0 {
		return
	}
	s.Task.State = StateRunning
	s.restore()
	s.rewind()
}

// forgetCalls forgets a peer's calls when nobody waits for the peer any more. A
// task that was paused for nothing else goes on.
func (s *step) forgetCalls(peer string) {
	if len(s.Task.asking(peer)) > 0 {
		return
	}
	had := len(s.Task.PeerAsks)
	s.Task.PeerAsks = slices.DeleteFunc(s.Task.PeerAsks, func(a PeerAsk) bool { return a.Swarm == peer })
	if len(s.Task.PeerAsks) == had || s.Task.State != StatePaused || len(s.Task.pendingCalls()) > 0 {
		return
	}
	s.Task.State = StateRunning
	s.goOn()
}

// bounceResults tells those who wait for a swarm that it did not take what people
// have answered.
func (s *step) bounceResults(l Letter, reason string) {
	for _, r := range s.Task.asking(l.Peer) {
		s.broken(r, fmt.Sprintf("The answer to calls of swarm %q that wait for a person was not delivered: %s. It is kept as dead letter %s.",
			l.Peer, reason, l.ID), l.Message.ID)
	}
	s.forgetCalls(l.Peer)
}

// unreported lets a paused task go on whose calls nobody will answer: the swarm that
// was to be told of them did not take the report.
func (s *step) unreported() {
	if s.Task.State == StatePaused {
		s.resume(Results{})
		s.rewind()
	}
}

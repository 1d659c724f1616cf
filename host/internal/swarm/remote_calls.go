package swarm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"skep/spec/mail"
)

// PeerCall is a call at another swarm that waits for a person. The task's owner answers
// it; a swarm in between forwards it.
type PeerCall struct {
	// Swarm reported the call and gets the result.
	Swarm string `json:"swarm"`
	// Agent is the address of the agent there that a request was made to.
	Agent string `json:"agent"`
	// Call is the call's id there, ID the one here, which is unique in the task.
	Call string `json:"call"`
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
	// Since is when the call was reported; zero in older records.
	Since time.Time `json:"since,omitzero"`
}

// functionCall is the call in the form that the poster receives.
func (a PeerCall) functionCall() functionCall {
	return functionCall{
		Arguments: a.Args, CallID: a.ID, Name: a.Name, Type: "function_call", ID: "fc_" + a.ID, Status: "completed", Swarm: a.Swarm,
	}
}

// maxPeerCalls bounds the peer calls in a task's record.
const maxPeerCalls = 64

// Bounds of one reported call, in bytes. Its id grows by a swarm's name with each swarm
// that forwards it.
const (
	maxCallID   = 1024
	maxCallName = 128
)

// readCalls parses a peer's report of calls that wait for people.
func readCalls(body string) ([]functionCall, bool) {
	var calls []functionCall
	if json.Unmarshal([]byte(body), &calls) != nil || len(calls) == 0 || len(calls) > maxPeerCalls {
		return nil, false
	}
	for _, c := range calls {
		if c.CallID == "" || len(c.CallID) > maxCallID || c.Name == "" || len(c.Name) > maxCallName {
			return nil, false
		}
	}
	return calls, true
}

// size is the size of the call in the record, in bytes.
func (a PeerCall) size() int {
	return len(a.Swarm) + len(a.Agent) + len(a.Call) + len(a.ID) + len(a.Name) + len(a.Args)
}

// handleRemoteCalls records a peer's report and pauses the task for it (G-46). It
// returns false for a report that is malformed or too large.
func (mut *mutationBuilder) handleRemoteCalls(peer string, r OpenRequest, body string) bool {
	calls, ok := readCalls(body)
	if !ok {
		return false
	}
	asks := slices.Clone(mut.Task.PeerCalls)
	fresh := make([]functionCall, 0, len(calls))
	for _, c := range calls {
		// Swarms number their calls alike; no local id has an @.
		id := mail.FormatAddr(c.CallID, peer)
		if slices.ContainsFunc(asks, func(a PeerCall) bool { return a.ID == id }) {
			continue // it was reported to several requesters
		}
		ask := PeerCall{peer, r.To, c.CallID, id, c.Name, c.Arguments, mut.now}
		asks, fresh = append(asks, ask), append(fresh, ask.functionCall())
	}
	size := 0
	for _, a := range asks {
		size += a.size()
	}
	if len(asks) > maxPeerCalls || size > MaxBreakpointBytes {
		return false
	}
	mut.Task.PeerCalls = asks
	if len(fresh) > 0 {
		mut.markHandled(r.Post) // the waiter for the request's answer gets the pause
		mut.waitForPeople(r.To, fresh)
	}
	return true
}

// peerResult is the result of one call for a peer; without Content there is none.
type peerResult struct {
	Call    string  `json:"call_id"`
	Content *string `json:"content,omitempty"`
}

// sendPeerResults sends results to the swarms whose calls which selects, and removes
// these calls.
func (mut *mutationBuilder) sendPeerResults(results Results, which func(id string) bool) {
	var peers []TaskPeer
	byPeer := map[string][]peerResult{}
	mut.Task.PeerCalls = slices.DeleteFunc(mut.Task.PeerCalls, func(a PeerCall) bool {
		if !which(a.ID) {
			return false
		}
		if byPeer[a.Swarm] == nil {
			name, _, _ := mail.ParseAddr(a.Agent)
			peers = append(peers, TaskPeer{Swarm: a.Swarm, Agent: name})
		}
		one := peerResult{Call: a.Call}
		if text, ok := results.contentOf(a.ID); ok {
			mut.logResult(a.Agent, a.ID, text)
			one.Content = &text
		}
		byPeer[a.Swarm] = append(byPeer[a.Swarm], one)
		return true
	})
	for _, p := range peers {
		mut.addNotice(p, "", "", mail.SubjectActionCompleteBcast, encodeResults(byPeer[p.Swarm]))
	}
}

func encodeResults(list []peerResult) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(list) // strings always encode
	return string(bytes.TrimSpace(b.Bytes()))
}

// bringsResults reports whether the wrapper brings results of calls that waited for
// people.
func (in Incoming) bringsResults() bool {
	p := in.Wrapper.Payload
	return p.Sender.Type == mail.System && p.Subject == mail.SubjectActionCompleteBcast
}

// parseResults reads the results in a wrapper.
func (in Incoming) parseResults() (r Results, err error) {
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

// handleRemoteResults applies results as from a user, on behalf of the swarm that the
// calls were reported to. A call without a result was reported later, and waits on.
func (mut *mutationBuilder) handleRemoteResults(in Incoming) {
	results, _ := in.parseResults() // checkWrapper has parsed them
	if mut.Task.State != StatePaused || !results.answersAny(mut.Task.pendingCalls()) {
		mut.logEvent("interswarm_message_ignored", "swarm "+in.Peer+" answers what nobody waits for", map[string]any{"swarm": in.Peer})
		return
	}
	mut.answerCalls(results)
}

// dropPeerCalls removes a peer's calls when no request to the peer is open any more. A
// task that was paused for nothing else goes on.
func (mut *mutationBuilder) dropPeerCalls(peer string) {
	if len(mut.Task.requestsTo(peer)) > 0 {
		return
	}
	had := len(mut.Task.PeerCalls)
	mut.Task.PeerCalls = slices.DeleteFunc(mut.Task.PeerCalls, func(a PeerCall) bool { return a.Swarm == peer })
	if len(mut.Task.PeerCalls) == had || mut.Task.State != StatePaused || len(mut.Task.pendingCalls()) > 0 {
		return
	}
	mut.Task.State = StateRunning
	mut.continueTask()
}

// failUndeliveredResults fails the requests to a swarm to which results could not be
// delivered.
func (mut *mutationBuilder) failUndeliveredResults(msg OutboxMessage, reason string) {
	for _, r := range mut.Task.requestsTo(msg.Peer) {
		mut.failRequest(r, fmt.Sprintf("The answer to calls of swarm %q that wait for a person was not delivered: %s. It is kept as dead letter %s.",
			msg.Peer, reason, msg.ID), msg.Message.ID)
	}
	mut.dropPeerCalls(msg.Peer)
}

// resumeUnreported resumes a paused task whose calls cannot be answered, because the
// report of them was undeliverable.
func (mut *mutationBuilder) resumeUnreported() {
	if mut.Task.State == StatePaused {
		mut.resumeTask(Results{})
		mut.resetDeadline()
	}
}

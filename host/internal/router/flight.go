package router

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"skep/abi"
	"skep/host/internal/egress"
	"skep/host/internal/swarm"
)

// kind says how a peer has answered.
type kind int

const (
	unanswered kind = iota
	taken
	refused
	// later asks to come again.
	later
	// unknownTask and knownTask say that the letter went the wrong way.
	unknownTask
	knownTask
)

// answer is what one attempt came to.
type answer struct {
	kind   kind
	runner string
	reason string
	wait   time.Duration
}

// otherWay reports whether the letter may be taken by the other route: a peer that
// has forgotten a task takes it anew, one that has it by its back route
// (contract 6.2). What the host itself has written begins no task anew.
func (a answer) otherWay(p swarm.Parcel, back bool) bool {
	return back && a.kind == unknownTask && !p.Notice || !back && a.kind == knownTask
}

// HopHeader counts the swarms that a task was handed on by.
const HopHeader = "X-Mail-Hop"

// flight makes one request.
func (r *Router) flight(ctx context.Context, peer Peer, p swarm.Parcel, back bool, within time.Duration) answer {
	policy, err := peer.policy()
	if err != nil {
		return answer{kind: refused, reason: err.Error()}
	}
	body, err := r.encode(peer, p, back)
	if err != nil {
		return answer{kind: refused, reason: err.Error()}
	}
	path := "/interswarm/forward"
	if back {
		path = "/interswarm/back"
	}
	headers := map[string]string{
		"Content-Type": "application/json", "Accept": "application/json",
		"User-Agent": "MAIL-Interswarm-Router/" + r.opt.Local, HopHeader: strconv.Itoa(p.Hops),
	}
	if p.Trace != "" {
		headers["Traceparent"] = p.Trace
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	got, broken := r.client.Fetch(ctx, policy, "", abi.FetchRequest{Method: http.MethodPost, URL: peer.BaseURL + path, Headers: headers, Body: body})
	if broken != nil {
		return failed(broken, within)
	}
	return read(got, p.Wrapper.Payload.TaskID)
}

// policy is where a letter may go and what it shows there.
func (p Peer) policy() (egress.Policy, error) {
	grant, err := egress.ParseGrant(p.BaseURL)
	if err != nil {
		return egress.Policy{}, fmt.Errorf("its base_url: %w", err)
	}
	policy := egress.Policy{Grants: []egress.Grant{grant}, AllowPrivate: p.Private, PrivateNames: p.PrivateNames, NoPublicHTTP: true}
	if p.Token == "" {
		return policy, nil
	}
	secret, err := egress.NewSecret("auth_token", "Bearer "+p.Token, "Authorization", p.BaseURL)
	policy.Secrets = []egress.Secret{secret}
	return policy, err
}

// failed tells what no peer has said. The limits here are no guest's, and no key
// of the file changes them.
func failed(broken *abi.Error, within time.Duration) answer {
	switch broken.Reason {
	case egress.ReasonRedirect:
		return answer{kind: refused, reason: "it answers with a redirect, which no letter follows; base_url must be where it really is"}
	case egress.ReasonSent:
		return answer{kind: refused, reason: "the letter is larger than what is sent to peers"}
	case egress.ReasonTimeout, egress.ReasonTurn:
		return answer{reason: fmt.Sprintf("it gave no whole answer within %s", within.Round(time.Millisecond))}
	case egress.ReasonBody:
		return answer{reason: fmt.Sprintf("its answer is larger than %d bytes", maxAnswer)}
	}
	if broken.Code == abi.CodeDenied || broken.Code == abi.CodeInvalid {
		return answer{kind: refused, reason: broken.Message}
	}
	return answer{reason: broken.Message}
}

package router

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
)

// verdict is how a peer has answered.
type verdict int

const (
	unanswered verdict = iota
	accepted
	refused
	// retryLater means that the peer wants the request again later.
	retryLater
	// unknownTask and knownTask mean that the other route may fit.
	unknownTask
	knownTask
)

// reply is the result of one request: the HTTP reply of the peer, or why there is none.
type reply struct {
	verdict verdict
	runner  string
	reason  string
	// local means that this host has not sent it.
	local bool
	// unsent means that nothing was tried: it tells nothing of the peer.
	unsent bool
	// inDoubt means that the peer may have the message and that it is not sent again.
	inDoubt bool
	wait    time.Duration
}

// otherRouteFits reports whether the peer may accept the message on its other
// route: forward for a task it has forgotten, back for one it already has. A
// notice by the host itself starts no task.
func (a reply) otherRouteFits(p swarm.Delivery, back bool) bool {
	return back && a.verdict == unknownTask && !p.Notice || !back && a.verdict == knownTask
}

// HopHeader counts how many swarms have forwarded the task.
const HopHeader = "X-Mail-Hop"

// send makes one request.
func (r *Router) send(ctx context.Context, peer Peer, p swarm.Delivery, back bool, within time.Duration) reply {
	policy, err := peer.policy()
	if err != nil {
		return reply{verdict: refused, reason: err.Error()}
	}
	body, err := r.encode(peer, p, back)
	switch {
	case errors.Is(err, swarm.ErrUnavailable): // the key that signs cannot be read now
		return reply{verdict: retryLater, unsent: true, reason: err.Error()}
	case err != nil:
		return reply{verdict: refused, reason: err.Error()}
	}
	path := "/interswarm/forward"
	if back {
		path = "/interswarm/back"
	}
	headers := map[string]string{
		"Content-Type": "application/json", "Accept": "application/json",
		"User-Agent": "MAIL-Interswarm-Router/" + r.opt.Local, HopHeader: strconv.Itoa(p.Hops),
	}
	p.Trace.Fields(func(name, value string) { headers[http.CanonicalHeaderKey(name)] = value })
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	got, broken := r.client.Fetch(ctx, policy, "", abi.FetchRequest{Method: http.MethodPost, URL: peer.BaseURL + path, Headers: headers, Body: body})
	if broken != nil {
		return failedFetch(broken, within)
	}
	return readReply(got, p.Wrapper.Payload.TaskID)
}

// policy returns the egress policy of requests to the peer.
func (p Peer) policy() (egress.Policy, error) {
	grant, err := egress.ParseGrant(p.BaseURL)
	if err != nil {
		return egress.Policy{}, fmt.Errorf("its base_url: %w", err)
	}
	policy := egress.Policy{Grants: []egress.Grant{grant}, AllowPrivate: p.AllowPrivate, PrivateNames: p.AllowPrivateNames, NoPublicHTTP: true, TLS: p.TLS,
		PrivateKey: "allow_private = true in [peers." + p.name + "]"}
	if p.Token == "" {
		return policy, nil
	}
	secret, err := egress.NewSecret("auth_token", "Bearer "+p.Token, "Authorization", p.BaseURL)
	policy.Secrets = []egress.Secret{secret}
	return policy, err
}

// failedFetch converts an error of egress. The limits behind it are not the limits of
// guests, and no configuration key changes them.
func failedFetch(broken *abi.Error, within time.Duration) reply {
	switch broken.Reason {
	case egress.ReasonRedirect:
		return reply{verdict: refused, reason: "it answers with a redirect, which no letter follows; base_url must be where it really is"}
	case egress.ReasonSent:
		return reply{verdict: refused, reason: "the letter is larger than what is sent to peers"}
	case egress.ReasonTimeout, egress.ReasonTurn:
		return reply{reason: fmt.Sprintf("it gave no whole answer within %s", within.Round(time.Millisecond))}
	case egress.ReasonBody:
		return reply{reason: fmt.Sprintf("its answer is larger than %d bytes", maxReply)}
	}
	if broken.Code == abi.CodeDenied || broken.Code == abi.CodeInvalid {
		return reply{verdict: refused, local: true, reason: broken.Message}
	}
	return reply{reason: broken.Message}
}

package router

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"skep/abi"
	"skep/host/internal/egress"
	"skep/host/internal/swarm"
	"skep/spec/mail"
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
// (contract 6.2).
func (a answer) otherWay(back bool) bool {
	return back && a.kind == unknownTask || !back && a.kind == knownTask
}

// HopHeader counts the swarms that a task was handed on by.
const HopHeader = "X-Mail-Hop"

// flight makes one request.
func (r *Router) flight(ctx context.Context, peer Peer, p swarm.Parcel, back bool) answer {
	select {
	case r.flights <- struct{}{}:
		defer func() { <-r.flights }()
	case <-ctx.Done():
		return answer{}
	}
	policy, err := peer.policy()
	if err != nil {
		return answer{kind: refused, reason: err.Error()}
	}
	body, err := encode(peer, p.Wrapper)
	if err != nil {
		return answer{kind: refused, reason: "it cannot be written as a MAIL wrapper: " + err.Error()}
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
	got, broken := r.client.Fetch(ctx, policy, "", abi.FetchRequest{Method: http.MethodPost, URL: peer.BaseURL + path, Headers: headers, Body: body})
	if broken != nil {
		return failed(broken)
	}
	return read(got)
}

// policy is where a letter may go and what it shows there.
func (p Peer) policy() (egress.Policy, error) {
	grant, err := egress.ParseGrant(p.BaseURL)
	if err != nil {
		return egress.Policy{}, fmt.Errorf("its base_url: %w", err)
	}
	policy := egress.Policy{Grants: []egress.Grant{grant}, AllowPrivate: p.Private}
	if p.Token == "" {
		return policy, nil
	}
	secret, err := egress.NewSecret("auth_token", "Bearer "+p.Token, "Authorization", p.BaseURL)
	policy.Secrets = []egress.Secret{secret}
	return policy, err
}

// encode makes the body of a request: strictly what the schema takes.
func encode(peer Peer, w mail.Interswarm) (string, error) {
	if peer.BodyToken {
		w.AuthToken = peer.Token
	}
	raw, err := w.AppendJSON([]byte(`{"message":`))
	return string(raw) + "}", err
}

// failed tells what no peer has said.
func failed(broken *abi.Error) answer {
	if broken.Code == abi.CodeDenied || broken.Code == abi.CodeInvalid || broken.Reason == egress.ReasonSent {
		return answer{kind: refused, reason: broken.Message}
	}
	return answer{reason: broken.Message}
}

// read understands what a peer answers, as this host or the reference does.
func read(got abi.FetchResponse) answer {
	var said struct {
		Runner string `json:"local_runner"`
		Detail string `json:"detail"`
	}
	isJSON := json.Unmarshal([]byte(got.Body), &said) == nil
	reason := fmt.Sprintf("%d %s", got.Status, http.StatusText(got.Status))
	if said.Detail != "" {
		reason += ": " + shown(said.Detail)
	}
	switch s := got.Status; {
	case s == http.StatusOK && isJSON:
		return answer{kind: taken, runner: said.Runner}
	case s == http.StatusOK:
		return answer{reason: "it does not answer as a MAIL server does"}
	case s == http.StatusTooManyRequests, s == http.StatusServiceUnavailable:
		return answer{kind: later, reason: reason, wait: retryAfter(got.Headers)}
	case s == http.StatusNotFound && strings.Contains(said.Detail, "task"), s == http.StatusBadRequest && strings.Contains(said.Detail, "task is not running"):
		return answer{kind: unknownTask, reason: reason}
	case s == http.StatusInternalServerError && strings.Contains(said.Detail, "exist"):
		return answer{kind: knownTask, reason: reason}
	case s >= 500 && !strings.HasPrefix(said.Detail, "server failed to receive interswarm"):
		return answer{reason: reason}
	}
	return answer{kind: refused, reason: reason}
}

// maxWait bounds how long a peer may ask to be left alone.
const maxWait = 10 * time.Minute

func retryAfter(headers map[string]string) time.Duration {
	for name, value := range headers {
		if strings.EqualFold(name, "Retry-After") {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err == nil && n > 0 {
				return min(time.Duration(n)*time.Second, maxWait)
			}
		}
	}
	return 0
}

// maxShown bounds what is passed on of a peer's words, in bytes.
const maxShown = 500

// shown makes a peer's words fit to be passed on.
func shown(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > maxShown {
		cut := maxShown
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}

package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
	"skep/spec/mail"
)

// Limits of a swarm's description.
const (
	requestTimeout = 10 * time.Second
	maxAnswer      = 64 << 10
	maxVersion     = 32
	maxDescription = 4 << 10
	maxKeywords    = 64
	maxKeyword     = 128
)

// description is the part of GET / that the registry stores.
type description struct {
	Version string `json:"protocol_version"`
	// Published is the version as the published description names it. The reference
	// server, which keeps its tasks in memory, does not have it.
	Published string  `json:"version"`
	Uptime    float64 `json:"uptime"` // in seconds
	Swarm     struct {
		Description string   `json:"description"`
		Entrypoint  string   `json:"entrypoint"`
		Keywords    []string `json:"keywords"`
		Public      bool     `json:"public"`
	} `json:"swarm"`
}

func (s *description) withinLimits() bool {
	long := func(word string) bool { return len(word) > maxKeyword }
	return len(s.Version) <= maxVersion && len(s.Swarm.Description) <= maxDescription &&
		len(s.Swarm.Keywords) <= maxKeywords && !slices.ContainsFunc(s.Swarm.Keywords, long)
}

// newClient returns the client for queries to swarms. It follows no redirect: the
// registered address must be the swarm's own.
func newClient(opt egress.Options) *egress.Client {
	opt.Timeout, opt.MaxResponseBody, opt.MaxRedirects = requestTimeout, maxAnswer, -1
	return egress.New(opt)
}

// describe queries a swarm's description. A forbidden address is a refusal; other
// faults are the swarm's.
func (r *Registry) describe(ctx context.Context, name, base string) (description, error) {
	body, err := r.get(ctx, base, "")
	var broken *abi.Error
	if errors.As(err, &broken) && broken.Reason == egress.ReasonAddress {
		return description{}, refuse(swarm.ErrInvalid,
			"base_url leads to an address that is not public; the operator can allow a private one with [peers.%s] allow_private = true in swarm.toml", name)
	}
	if err != nil {
		return description{}, err
	}
	var s description
	if err := json.Unmarshal([]byte(body), &s); err != nil || !s.withinLimits() {
		return description{}, errors.New("it does not answer as a MAIL server does")
	}
	if mail.CheckAgentName(s.Swarm.Entrypoint) != nil {
		s.Swarm.Entrypoint = ""
	}
	return s, nil
}

// get returns the body of a 200. Transport errors are *abi.Error.
func (r *Registry) get(ctx context.Context, base, path string) (string, error) {
	policy, err := r.policy(base)
	if err != nil {
		return "", err
	}
	answer, broken := r.client.Fetch(ctx, policy, "", abi.FetchRequest{
		Method: http.MethodGet, URL: base + path, Headers: map[string]string{"Accept": "application/json"},
	})
	switch {
	case broken != nil:
		return "", broken
	case answer.Status != http.StatusOK:
		return "", fmt.Errorf("it answers %d %s", answer.Status, http.StatusText(answer.Status))
	}
	return answer.Body, nil
}

// policy returns the egress policy for a swarm's address. Only the operator's
// file allows a name that resolves to a private address.
func (r *Registry) policy(base string) (egress.Policy, error) {
	grant, err := egress.ParseGrant(base)
	if err != nil {
		return egress.Policy{}, invalid("base_url: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := egress.Policy{Grants: []egress.Grant{grant}, AllowPrivate: r.opt.AllowPrivate}
	for _, e := range r.entries {
		if e.Fixed && e.BaseURL == base {
			p.AllowPrivate, p.PrivateNames = p.AllowPrivate || e.AllowPrivate, p.PrivateNames || e.AllowPrivate
			p.TLS = cmp.Or(p.TLS, e.TLS)
		}
	}
	return p, nil
}

package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"skep/abi"
	"skep/host/internal/egress"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// Bounds of what a swarm may say of itself.
const (
	lookTime       = 10 * time.Second
	maxAnswer      = 64 << 10
	maxVersion     = 32
	maxDescription = 4 << 10
	maxKeywords    = 64
	maxKeyword     = 128
)

// said is what a swarm answers on its root.
type said struct {
	Version string `json:"protocol_version"`
	Swarm   struct {
		Description string   `json:"description"`
		Entrypoint  string   `json:"entrypoint"`
		Keywords    []string `json:"keywords"`
		Public      bool     `json:"public"`
	} `json:"swarm"`
}

func (s *said) fits() bool {
	long := func(word string) bool { return len(word) > maxKeyword }
	return len(s.Version) <= maxVersion && len(s.Swarm.Description) <= maxDescription &&
		len(s.Swarm.Keywords) <= maxKeywords && !slices.ContainsFunc(s.Swarm.Keywords, long)
}

// newClient returns what asks swarms about themselves. It follows nothing: the
// address that was registered is the swarm's or nobody's.
func newClient(opt egress.Options) *egress.Client {
	opt.Timeout, opt.MaxBody, opt.MaxRedirects = lookTime, maxAnswer, -1
	return egress.New(opt)
}

// look asks a swarm what it is. An address that this host may not reach is a
// refusal; anything else that goes wrong is the swarm's own trouble.
func (r *Registry) look(ctx context.Context, name, base string) (said, error) {
	body, err := r.get(ctx, base, "")
	var broken *abi.Error
	if errors.As(err, &broken) && broken.Reason == egress.ReasonAddress {
		return said{}, refuse(swarm.ErrInvalid,
			"base_url leads to an address that is not public; the operator can allow a private one with [peers.%s] allow_private = true in swarm.toml", name)
	}
	if err != nil {
		return said{}, err
	}
	var s said
	if err := json.Unmarshal([]byte(body), &s); err != nil || !s.fits() {
		return said{}, errors.New("it does not answer as a MAIL server does")
	}
	if mail.CheckAgentName(s.Swarm.Entrypoint) != nil {
		s.Swarm.Entrypoint = ""
	}
	return s, nil
}

// get returns the body of what a swarm answers with status 200. Errors of the
// way there are *abi.Error.
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

// policy is where a request to a swarm may go. Only the operator's file makes a
// name lead to a private address.
func (r *Registry) policy(base string) (egress.Policy, error) {
	grant, err := egress.ParseGrant(base)
	if err != nil {
		return egress.Policy{}, invalid("base_url: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	named := slices.ContainsFunc(r.entries, func(e Entry) bool { return e.AllowPrivate && e.BaseURL == base })
	return egress.Policy{Grants: []egress.Grant{grant}, AllowPrivate: r.opt.Private || named, PrivateNames: named}, nil
}

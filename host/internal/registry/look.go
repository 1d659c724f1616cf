package registry

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"skep/abi"
	"skep/host/internal/egress"
	"skep/host/internal/swarm"
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
	grant, err := egress.ParseGrant(base)
	if err != nil {
		return said{}, invalid("base_url: %v", err)
	}
	policy := egress.Policy{Grants: []egress.Grant{grant}, AllowPrivate: r.opt.Private}
	answer, broken := r.client.Fetch(ctx, policy, "", abi.FetchRequest{
		Method: http.MethodGet, URL: base, Headers: map[string]string{"Accept": "application/json"},
	})
	switch {
	case broken != nil && broken.Reason == egress.ReasonAddress:
		return said{}, refuse(swarm.ErrInvalid,
			"base_url leads to an address that is not public; the operator can allow a private one with [peers.%s] allow_private = true in swarm.toml", name)
	case broken != nil:
		return said{}, broken
	case answer.Status != http.StatusOK:
		return said{}, errors.New("it answers " + http.StatusText(answer.Status))
	}
	var s said
	if err := json.Unmarshal([]byte(answer.Body), &s); err != nil || !s.fits() {
		return said{}, errors.New("it does not answer as a MAIL server does")
	}
	return s, nil
}

package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"skep/abi"
	"skep/host/internal/egress"
	"skep/host/internal/swarm"
)

// Bounds of discovery.
const (
	// maxListed is how many swarms of one list are taken.
	maxListed = 64
	// maxFound is how many discovered swarms are known at once, besides the
	// others.
	maxFound = 256
)

// listed is one entry of a GET /swarms. The reference looks for `name` and writes
// `swarm_name`; both are read.
type listed struct {
	SwarmName string `json:"swarm_name"`
	Name      string `json:"name"`
	BaseURL   string `json:"base_url"`
}

// Discover asks the host at url, an http or https URL as of a peer, for the
// swarms it lists (GET url/swarms, 10 s, 64 KiB, no redirects), and makes those
// known that are not yet: volatile, without a token, at most 64 of one list and
// 256 in all. What is known stays as it is, and nobody's list puts an address
// behind a known name. It returns the listed swarms that are known now at the
// address of the list, in its order; there may be none.
//
// Errors that are the caller's, as an address that this host must not reach, are
// *swarm.Refusal; others tell what is wrong with the answer, never its text. It
// writes no file and may be called by many at once. A discovered swarm is not
// active before it has answered, see [Registry.Run], is never listed by this
// host's GET /swarms, and takes no mail before an admin registers it with a
// token.
func (r *Registry) Discover(ctx context.Context, url string) ([]Entry, error) {
	base, err := baseURL(url)
	if err != nil {
		return nil, err
	}
	body, err := r.get(ctx, base, "/swarms")
	var broken *abi.Error
	switch {
	case errors.As(err, &broken) && broken.Reason == egress.ReasonAddress:
		return nil, refuse(swarm.ErrInvalid, "%s leads to an address that is not public", base)
	case err != nil:
		return nil, fmt.Errorf("%s does not list swarms: %w", base, err)
	}
	var said struct {
		Swarms []listed `json:"swarms"`
	}
	if json.Unmarshal([]byte(body), &said) != nil {
		return nil, fmt.Errorf("%s does not list swarms as a MAIL server does", base)
	}
	return r.meet(said.Swarms[:min(len(said.Swarms), maxListed)]), nil
}

// meet makes the listed swarms known that are not.
func (r *Registry) meet(list []listed) (met []Entry) {
	r.saving.Lock()
	defer r.saving.Unlock()
	now := r.opt.Now().UTC()
	entries := slices.DeleteFunc(r.Entries(), func(e Entry) bool { return e.unused(now) })
	for _, l := range list {
		name := cmp.Or(l.SwarmName, l.Name)
		base, err := baseURL(l.BaseURL)
		if err != nil {
			continue
		}
		i := indexOf(entries, name)
		switch {
		case i >= 0 && entries[i].BaseURL == base:
			entries[i].Used = now
			met = append(met, entries[i])
		case i < 0 && r.free(entries, name) == nil && found(entries) < maxFound:
			e := Entry{Name: name, BaseURL: base, Keywords: []string{}, Volatile: true, Found: true, Registered: now, Used: now}
			entries, met = append(entries, e), append(met, e)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = entries
	r.due.wake()
	return met
}

// found counts those that lists have brought.
func found(entries []Entry) (n int) {
	for _, e := range entries {
		if e.Found {
			n++
		}
	}
	return n
}

// use says that somebody wants to know of a swarm.
func (r *Registry) use(name string) {
	r.saving.Lock()
	defer r.saving.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := indexOf(r.entries, name); i >= 0 {
		r.entries[i].Used = r.opt.Now().UTC()
	}
}

// unused reports whether an entry came with a list, and nobody has wanted it since.
func (e Entry) unused(now time.Time) bool { return e.Found && now.Sub(e.Used) > forgetAfter }

func indexOf(entries []Entry, name string) int {
	return slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
}

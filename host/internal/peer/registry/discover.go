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
	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
)

// Limits of discovery.
const (
	// maxListed bounds the swarms taken from one list.
	maxListed = 64
	// maxDiscovered bounds the discovered swarms, apart from the others.
	maxDiscovered = 256
)

// listed is one entry of GET /swarms. The reference reads `name` and writes
// `swarm_name`; both are accepted.
type listed struct {
	SwarmName string `json:"swarm_name"`
	Name      string `json:"name"`
	BaseURL   string `json:"base_url"`
}

// Discover queries the host at url, a URL as of a peer, for the swarms it lists
// (GET url/swarms, 10 s, 64 KiB, no redirects), and adds the unknown ones:
// volatile, without a token, at most 64 of one list and 256 in all. Known
// entries stay as they are, so that no list changes the address of a known name.
// It returns the listed swarms that are known at the listed address, in the
// list's order; there may be none.
//
// The caller's errors, such as a forbidden address, are *swarm.Refusal. Other
// errors describe the fault of the answer without its text. It writes no file
// and is safe for concurrent use. A discovered swarm is not active before it has
// answered, see [Registry.Run]. This host's GET /swarms never lists it, and it
// takes no mail before an admin registers it with a token.
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
	return r.addListed(said.Swarms[:min(len(said.Swarms), maxListed)]), nil
}

// addListed adds the listed swarms that are unknown.
func (r *Registry) addListed(list []listed) (met []Entry) {
	r.saving.Lock()
	defer r.saving.Unlock()
	now := r.opt.Now().UTC()
	entries := slices.DeleteFunc(r.Entries(), func(e Entry) bool { return e.expired(now) })
	for _, l := range list {
		name := cmp.Or(l.SwarmName, l.Name)
		base, err := baseURL(l.BaseURL)
		if err != nil {
			continue
		}
		i := indexOf(entries, name)
		switch {
		case i >= 0 && entries[i].BaseURL == base:
			entries[i].LastUsed = now
			met = append(met, entries[i])
		case i < 0 && r.checkFree(entries, name) == nil && countDiscovered(entries) < maxDiscovered:
			e := Entry{Name: name, BaseURL: base, Keywords: []string{}, Volatile: true, Discovered: true, Registered: now, LastUsed: now}
			entries, met = append(entries, e), append(met, e)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = entries
	r.schedule.wake()
	return met
}

// countDiscovered counts the discovered swarms.
func countDiscovered(entries []Entry) (n int) {
	for _, e := range entries {
		if e.Discovered {
			n++
		}
	}
	return n
}

// touch records a use of a discovered swarm.
func (r *Registry) touch(name string) {
	r.saving.Lock()
	defer r.saving.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := indexOf(r.entries, name); i >= 0 {
		r.entries[i].LastUsed = r.opt.Now().UTC()
	}
}

// expired reports whether a discovered entry was not used for discoveredTTL.
func (e Entry) expired(now time.Time) bool {
	return e.Discovered && now.Sub(e.LastUsed) > discoveredTTL
}

func indexOf(entries []Entry, name string) int {
	return slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
}

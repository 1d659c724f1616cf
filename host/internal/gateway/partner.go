package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"skep/host/internal/api/auth"
)

// Partner is a configured realm.
type Partner struct {
	// Name is the realm's swarm name: agents write to NAME@<partner>.
	Name   string
	Tenant string
	// URL is where it is reached, empty for a realm that fetches its mail.
	URL string
	// IDs are patterns of the foreign ids that belong to it, Agents the local agents
	// that it may see; an empty Agents is all exposed ones.
	IDs, Agents []string
	May         Rights
	// Timeout is the time for one answer, greater than 0, GiveUp how long an unreachable realm is tried.
	Timeout, GiveUp time.Duration
	// RetryInDoubt allows another attempt after one whose outcome is not known.
	RetryInDoubt bool
	// Client sends requests to it: it checks addresses, adds the credential, bounds sizes.
	// It is nil for a realm that is not called.
	Client *http.Client
	// Dialer connects to a realm that is called without HTTP, nil for others.
	Dialer *Dialer
	// HMACKey is the key that binds messages to it both ways, nil for none.
	HMACKey []byte
	// SigningKey is a private JSON Web Key that signs the messages to it, nil for none.
	SigningKey []byte
	// Documents fetches its public documents where only its own table allows their addresses,
	// without its credential. It is nil where they are fetched as of any public host.
	Documents http.RoundTripper
	// Options are the keys of its table that only its protocol has.
	Options map[string]any
}

// Dialer opens connections to a realm, at checked addresses.
type Dialer struct {
	// Dial connects. With TLS it has shaken hands. ctx needs a deadline.
	Dial func(ctx context.Context) (net.Conn, error)
	// Token and APIKey return what the realm is shown, empty for nothing: functions, so that
	// no log prints them.
	Token, APIKey func() string
}

// Owns reports whether a foreign id belongs to the realm.
func (p Partner) Owns(id string) bool { return Matches(p.IDs, id) }

// Sees reports whether the realm may see an exposed agent.
func (p Partner) Sees(agent string) bool {
	return len(p.Agents) == 0 || slices.Contains(p.Agents, agent)
}

// Caller is who speaks for the partner in an answer that the host has fetched itself.
func (p Partner) Caller() Caller {
	return Caller{Principal: auth.Principal{Tenant: p.Tenant, Role: auth.Agent, ID: p.Name, Peer: p.Name}, Realm: p.Name, May: p.May}
}

// NoAnswer is why a question has no answer in the partner's time, with its gateway and what was wrong, nil
// for nothing.
func (p Partner) NoAnswer(gateway string, trouble error) error {
	text := fmt.Sprintf("%s did not answer within %s: raise timeout in [gateways.%s.partners.%s]", p.Name, p.Timeout, gateway, p.Name)
	if trouble != nil {
		text += "; " + trouble.Error()
	}
	return Refuse("%s", text)
}

// Matches reports whether one of the patterns matches an id. A star is any text, and
// case counts.
func Matches(patterns []string, id string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, id) })
}

// matches compares part by part: the text between two stars at its first place, which
// leaves the most for the parts after it.
func matches(pattern, id string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == id
	}
	rest, ok := strings.CutPrefix(id, parts[0])
	for _, part := range parts[1:last] {
		if !ok {
			return false
		}
		_, rest, ok = strings.Cut(rest, part)
	}
	return ok && strings.HasSuffix(rest, parts[last])
}

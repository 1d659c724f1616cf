package gateway

import (
	"context"
	"fmt"
	"slices"

	"skep/host/internal/api/auth"
)

// Caller is who speaks to a gateway, proven by the transport.
type Caller struct {
	Principal auth.Principal
	// Realm is the swarm name of the realm that the caller speaks for: a partner's, or
	// <gateway>+<realm>. Empty for users and admins, who come for themselves.
	Realm string
	// May are the caller's rights.
	May Rights
	// Recheck, if set, reports whether the credential still holds: what outlives the
	// caller's request, as a session does, ends when it does not. The request itself and its
	// streams are ended by the listener.
	Recheck func(context.Context) bool
	// Digest is the credential's where it can be stored for [Runtime].Renew, else zero.
	Digest auth.Digest
}

// IsUser reports whether the caller comes for himself: his messages go to the
// entrypoints of his own instance, and his answer is the completion.
func (c Caller) IsUser() bool { return c.Principal.Role != auth.Agent }

// Missing refuses what the caller has not the right to do, in words that a partner's reader
// and the operator understand.
func (c Caller) Missing(gateway string, r Right) string {
	return fmt.Sprintf("%q lacks the right %q: add it to may of [gateways.%s.partners.%s]", c.Realm, r, gateway, c.Realm)
}

// Right is what a realm may do besides what every gateway allows.
type Right string

// The rights of realms.
const (
	MayAsk       Right = "ask"
	MayTell      Right = "tell"
	MayTools     Right = "tools"
	MayRegister  Right = "register"
	MayContexts  Right = "contexts"
	MayWorkflows Right = "workflows"
	MayBroadcast Right = "broadcast"
	MayRelay     Right = "relay"
)

// Rights is a set of rights.
type Rights []Right

// Has reports whether r is among the rights.
func (rs Rights) Has(r Right) bool { return slices.Contains(rs, r) }

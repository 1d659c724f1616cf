package gateway

import (
	"net/http"
	"time"
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
	// Timeout is the time for one answer, GiveUp how long an unreachable realm is tried.
	Timeout, GiveUp time.Duration
	// Client sends requests to it: it checks addresses, adds the credential, bounds sizes.
	Client *http.Client
	// Options are the keys of its table that only its protocol has.
	Options map[string]any
}

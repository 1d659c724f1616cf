package registry

import (
	"encoding/json"
	"time"
)

// Entry is one swarm that this host knows. Its JSON is that of the file.
type Entry struct {
	Name string `json:"swarm_name"`
	// BaseURL has no trailing slash.
	BaseURL string `json:"base_url"`
	// Version is that of the protocol, empty for a swarm that never answered.
	Version string `json:"version"`
	// Entrypoint is the agent there that takes mail for nobody in particular,
	// empty for a swarm that has not said.
	Entrypoint string `json:"entrypoint,omitempty"`
	// TokenRef is where the token for calls to the swarm is found, empty when
	// there is none or it is kept in memory only.
	TokenRef string `json:"auth_token_ref,omitempty"`
	// LastSeen is when the swarm last answered; zero for never.
	LastSeen time.Time `json:"last_seen,omitzero"`
	// Latency is how long it last took to answer, in seconds; nil for never.
	Latency     *float64 `json:"latency"`
	Description string   `json:"swarm_description"`
	Keywords    []string `json:"keywords"`
	Public      bool     `json:"public"`
	// Active is whether it answered when it was last asked.
	Active bool `json:"is_active"`
	// Since is when Active became what it is; zero for a swarm that was never
	// asked. Trouble is why it is not active, empty for one that is or was never
	// asked.
	Since    time.Time       `json:"since,omitzero"`
	Trouble  string          `json:"trouble,omitempty"`
	Metadata json.RawMessage `json:"metadata"`
	Volatile bool            `json:"volatile"`
	// Registered is when the entry was made; it gives the order.
	Registered time.Time `json:"registered"`
	// Fixed is an entry of the operator's file. AllowPrivate lets one be at a
	// private address, and its name lead to one.
	Fixed        bool `json:"-"`
	AllowPrivate bool `json:"-"`
	// Found is an entry that another swarm has listed, and nobody vouches for.
	// Used is when a list last had it, or somebody has pinged it.
	Found bool      `json:"-"`
	Used  time.Time `json:"-"`
}

// Static is a swarm of the operator's file. Nobody registers over it.
type Static struct {
	Name, BaseURL string
	Public        bool
	AllowPrivate  bool
	Metadata      json.RawMessage
}

func (s Static) entry() Entry {
	return Entry{
		Name: s.Name, BaseURL: s.BaseURL, Public: s.Public, Metadata: s.Metadata, AllowPrivate: s.AllowPrivate,
		Keywords: []string{}, TokenRef: "[peers." + s.Name + "] auth_token", Fixed: true,
	}
}

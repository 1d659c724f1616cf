package registry

import (
	"crypto/tls"
	"encoding/json"
	"time"
)

// Entry is one known swarm. Its JSON is the format of the file.
type Entry struct {
	Name string `json:"swarm_name"`
	// BaseURL has no trailing slash.
	BaseURL string `json:"base_url"`
	// Version is the protocol version, empty for a swarm that never answered.
	Version string `json:"version"`
	// Entrypoint is the swarm's default agent, empty if unknown.
	Entrypoint string `json:"entrypoint,omitempty"`
	// TokenRef is where the token for calls to the swarm is stored, empty when
	// there is none or it is in memory only.
	TokenRef string `json:"auth_token_ref,omitempty"`
	// LastSeen is the time of the last answer; zero for never.
	LastSeen time.Time `json:"last_seen,omitzero"`
	// Latency is the duration of the last answer in seconds; nil for never.
	Latency     *float64 `json:"latency"`
	Description string   `json:"swarm_description"`
	Keywords    []string `json:"keywords"`
	Public      bool     `json:"public"`
	// Active is the result of the last health check.
	Active bool `json:"is_active"`
	// Since is the last change of Active; zero before the first check. LastError
	// is why it is not active.
	Since     time.Time       `json:"since,omitzero"`
	LastError string          `json:"trouble,omitempty"`
	Metadata  json.RawMessage `json:"metadata"`
	Volatile  bool            `json:"volatile"`
	// Registered is the time of registration; it gives the order.
	Registered time.Time `json:"registered"`
	// Fixed is an entry of the operator's file. AllowPrivate allows a private
	// address, and a name that resolves to one.
	Fixed        bool `json:"-"`
	AllowPrivate bool `json:"-"`
	// TLS is of an entry of the file: the authorities that vouch for the swarm, and
	// the certificate that it is shown.
	TLS *tls.Config `json:"-"`
	// Discovered is an entry from another swarm's list, which no admin has
	// confirmed. LastUsed is the last time that a list had it or a ping used it.
	Discovered bool      `json:"-"`
	LastUsed   time.Time `json:"-"`
}

// Static is a swarm of the operator's file. It cannot be registered over.
type Static struct {
	Name, BaseURL string
	Public        bool
	AllowPrivate  bool
	Metadata      json.RawMessage
	TLS           *tls.Config
}

func (s Static) entry() Entry {
	return Entry{
		Name: s.Name, BaseURL: s.BaseURL, Public: s.Public, Metadata: s.Metadata, AllowPrivate: s.AllowPrivate, TLS: s.TLS,
		Keywords: []string{}, TokenRef: "[peers." + s.Name + "] auth_token", Fixed: true,
	}
}

package auth

// Principal is a caller whose key is known.
type Principal struct {
	Tenant string
	Role   Role
	ID     string
	// Peer is the swarm that an agent speaks for, empty for the one that its
	// ID names; of others it is empty.
	Peer string
	// Maker is who had the token made that the host has issued to an agent, as
	// the authenticator tells it; of all others it is zero.
	Maker Maker
}

// Speaks returns the swarm that an agent speaks for.
func (p Principal) Speaks() string {
	switch {
	case p.Role != Agent:
		return ""
	case p.Peer != "":
		return p.Peer
	}
	return p.ID
}

// String is role:id for logs, preceded by the tenant where there is one.
func (p Principal) String() string {
	s := string(p.Role) + ":" + p.ID
	if p.Tenant != "" {
		return p.Tenant + "/" + s
	}
	return s
}

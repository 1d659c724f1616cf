package auth

// Principal is an authenticated caller.
type Principal struct {
	Tenant string
	Role   Role
	ID     string
	// Peer is the swarm that an agent speaks for. Empty means the swarm of its
	// ID; it is empty for other roles.
	Peer string
	// Creator is who had an agent's token issued. It is zero for all other
	// principals.
	Creator Creator
}

// PeerSwarm returns the swarm that an agent speaks for, "" for other roles.
func (p Principal) PeerSwarm() string {
	switch {
	case p.Role != Agent:
		return ""
	case p.Peer != "":
		return p.Peer
	}
	return p.ID
}

// String returns tenant/role:id for logs, without an empty tenant.
func (p Principal) String() string {
	s := string(p.Role) + ":" + p.ID
	if p.Tenant != "" {
		return p.Tenant + "/" + s
	}
	return s
}

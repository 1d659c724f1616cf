package auth

import "skep/spec/mail"

// Role is what a principal may do.
type Role string

// User, Admin and Agent are MAIL's roles. An Operator runs the host and may do
// all that an admin may.
const (
	Operator Role = "operator"
	Admin    Role = "admin"
	User     Role = "user"
	Agent    Role = "agent"
)

// Valid reports whether r is one of the four roles.
func (r Role) Valid() bool { return r == Operator || r == Admin || r == User || r == Agent }

// Covers reports whether a caller of role r may use a route that needs need. An
// agent is a peer, not a lesser user: only agents have its routes, and they have
// no others.
func (r Role) Covers(need Role) bool {
	switch need {
	case User:
		return r == User || r == Admin || r == Operator
	case Admin:
		return r == Admin || r == Operator
	case Operator, Agent:
		return r == need
	}
	return false
}

// Mail returns the role of the principal's MAIL instance (S-08): operators act as
// admins, a peer's agents as a swarm.
func (r Role) Mail() mail.Role {
	switch r {
	case Operator, Admin:
		return mail.RoleAdmin
	case Agent:
		return mail.RoleSwarm
	case User:
	}
	return mail.RoleUser
}

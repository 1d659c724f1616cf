package mail

import (
	"strings"
	"unicode/utf8"
)

// Role is the part of an owner string before the ':'.
type Role string

// The roles of this host's own instances (S-07). A peer that acts through an
// agent token has an instance of RoleSwarm (S-08).
const (
	RoleAdmin Role = "admin"
	RoleUser  Role = "user"
	RoleSwarm Role = "swarm"
)

// Valid reports whether r is one of the three roles.
func (r Role) Valid() bool { return r == RoleAdmin || r == RoleUser || r == RoleSwarm }

// Owner names an instance: the owner of a task, or one of its contributors
// . ID is kept as it stands in the string, escapes included, so
// that String gives back exactly what was parsed; see [SplitPrincipal].
type Owner struct {
	Role  Role
	ID    string
	Swarm string
}

// NewOwner returns the owner string's parts for a principal of this host. tenant
// may be empty for [DefaultTenant]. The error is a *[FieldError].
func NewOwner(role Role, tenant, id, swarm string) (Owner, error) {
	o := Owner{Role: role, ID: PrincipalID(tenant, id), Swarm: swarm}
	return o, o.Validate()
}

// String returns role:id@swarm.
func (o Owner) String() string { return string(o.Role) + ":" + o.ID + "@" + o.Swarm }

// Validate returns a *[FieldError] unless o could name an instance of this host:
// a known role, an id as [PrincipalID] makes it, a swarm name.
func (o Owner) Validate() error {
	if !o.Role.Valid() {
		return faultf("role", "must be admin, user or swarm")
	}
	if _, _, err := SplitPrincipal(o.ID); err != nil {
		return under("id", err)
	}
	return under("swarm", CheckSwarmName(o.Swarm))
}

// ParseOwner reads role:id@swarm as this host writes it, split at the first ':'
// and the last '@' (S-07, R-028). The error is a *[FieldError].
func ParseOwner(s string) (Owner, error) {
	o, err := cutOwner(s)
	if err != nil {
		return Owner{}, err
	}
	if err := o.Validate(); err != nil {
		return Owner{}, err
	}
	return o, nil
}

// ParseForeignOwner reads role:id@swarm as other hosts write it: any role, and
// any printable id, also one with '@' or ':' in it. Use it for owners whose
// swarm is not the local one, [ParseOwner] for the others.
func ParseForeignOwner(s string) (Owner, error) {
	o, err := cutOwner(s)
	if err != nil {
		return Owner{}, err
	}
	if err := checkName(string(o.Role), MaxName, "@:"); err != nil {
		return Owner{}, under("role", err)
	}
	if err := checkForeignID(o.ID); err != nil {
		return Owner{}, under("id", err)
	}
	if err := CheckSwarmName(o.Swarm); err != nil {
		return Owner{}, under("swarm", err)
	}
	return o, nil
}

func cutOwner(s string) (Owner, error) {
	colon, at := strings.IndexByte(s, ':'), strings.LastIndexByte(s, '@')
	if colon < 0 || at < colon {
		return Owner{}, faultf("", "must have the form role:id@swarm")
	}
	return Owner{Role: Role(s[:colon]), ID: s[colon+1 : at], Swarm: s[at+1:]}, nil
}

func checkForeignID(id string) error {
	switch {
	case id == "":
		return faultf("", "must not be empty")
	case utf8.RuneCountInString(id) > MaxForeignName:
		return faultf("", "must have at most %d characters", MaxForeignName)
	case !Printable(id):
		return faultf("", "must consist of printable characters")
	}
	return nil
}

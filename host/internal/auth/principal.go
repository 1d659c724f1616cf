package auth

// Principal is a caller whose key is known.
type Principal struct {
	Tenant string
	Role   Role
	ID     string
}

// String is role:id for logs, preceded by the tenant where there is one.
func (p Principal) String() string {
	s := string(p.Role) + ":" + p.ID
	if p.Tenant != "" {
		return p.Tenant + "/" + s
	}
	return s
}

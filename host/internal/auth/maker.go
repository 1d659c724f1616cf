package auth

import "strings"

// Maker is who had a token made that the host has issued.
type Maker struct {
	Tenant string
	Role   Role
}

// maker is who had an agent's token made. It stands in By before the id, which may
// hold anything; what cannot be read counts as an admin of the token's tenant.
func (i Issued) maker() Maker {
	if i.Role != Agent {
		return Maker{}
	}
	tenant, who, found := strings.Cut(i.By, "/")
	role, _, named := strings.Cut(who, ":")
	if !found || !named || strings.Contains(tenant, ":") || !Role(role).Valid() {
		return Maker{i.Tenant, Admin}
	}
	return Maker{tenant, Role(role)}
}

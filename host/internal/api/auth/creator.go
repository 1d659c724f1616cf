package auth

import "strings"

// Creator is who had the host issue a token.
type Creator struct {
	Tenant string
	Role   Role
}

// creator parses the creator of an agent's token from By, where it stands before
// the id, which may hold anything. A By that does not parse counts as an admin of
// the token's tenant.
func (i IssuedToken) creator() Creator {
	if i.Role != Agent {
		return Creator{}
	}
	tenant, who, found := strings.Cut(i.By, "/")
	role, _, named := strings.Cut(who, ":")
	if !found || !named || strings.Contains(tenant, ":") || !Role(role).Valid() {
		return Creator{i.Tenant, Admin}
	}
	return Creator{tenant, Role(role)}
}

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"skep/spec/mail"
)

// Auth is the [auth] table.
type Auth struct {
	Keys      []AuthKey
	JWT       JWT
	Endpoints AuthEndpoints
}

// Roles of an [AuthKey].
const (
	RoleOperator = "operator"
	RoleAdmin    = "admin"
	RoleUser     = "user"
	RoleAgent    = "agent"
)

// AuthKey is one [[auth.keys]] table. The key itself is not kept: text
// with this digest proves that a caller is the principal.
type AuthKey struct {
	Tenant string
	ID     string
	Role   string
	// Peer is the swarm that an agent speaks for, empty for the one named by
	// its ID.
	Peer   string
	SHA256 [sha256.Size]byte
	Pos    Pos
}

// Settings declare the keys for the page; authKey reads them.
func (k *AuthKey) Settings() []Setting {
	return []Setting{
		readElsewhere(&k.ID, "id", "string", "Who it is: 1 to 128 letters, digits, `.`, `_`, `~` or `-`.").needed(""),
		choice(&k.Role, "role", "", []string{RoleOperator, RoleAdmin, RoleUser, RoleAgent}, "What it may do; `agent` is another swarm.").needed(""),
		readElsewhere(&k.Tenant, "tenant", "string", "Whose principal it is.").withDefaultText(mail.DefaultTenant),
		readElsewhere(&k.Peer, "peer", "string", "The swarm that an agent's key speaks for; without it the one named by `id`."),
		readElsewhere(&k.SHA256, "key", "string", "The key, at least 16 characters."),
		readElsewhere(&k.SHA256, "key_sha256", "digest", "In place of `key`: its sha256 in hexadecimal digits."),
	}
}

// minKey is the shortest key: 16 random characters are beyond guessing.
const minKey = 16

func (d *decoder) auth(t *table, local string, tenants []string) Auth {
	a := Auth{
		Keys:      d.authKeys(t, local, tenants),
		JWT:       d.jwt(t.table("jwt"), local, tenants),
		Endpoints: d.endpoints(t.table("endpoints"), local, tenants),
	}
	t.refuseUnknown()
	return a
}

// NamesKeys reports whether the file at path has [[auth.keys]]. It does not look at
// the rest: a caller need not have what that refers to. A file that cannot be read
// has none.
func NamesKeys(path string) bool {
	_, file, err := open(path, Options{})
	return err == nil && len(file.table("auth").tables("keys")) > 0
}

func (d *decoder) authKeys(t *table, local string, tenants []string) []AuthKey {
	var out []AuthKey
	principals, digests := map[string]bool{}, map[[sha256.Size]byte]bool{}
	for _, sub := range t.tables("keys") {
		k, complete := d.authKey(sub, local, tenants)
		if !complete {
			continue
		}
		principal := k.Role + ":" + k.ID
		if name := k.Tenant + "/" + principal; principals[name] {
			d.atKey(sub.location, fmt.Sprintf("%s has two keys; a role and id may have one", principal))
		} else {
			principals[name] = true
		}
		for _, other := range out {
			if k.Tenant == other.Tenant && k.ID == other.ID && bothAdmins(k.Role, other.Role) {
				d.atKey(sub.location, fmt.Sprintf("%s has the id of %s:%s, and MAIL knows both as admins; one of them needs another id", principal, other.Role, other.ID))
			}
		}
		if digests[k.SHA256] {
			d.atKey(sub.location, "this key is also that of another principal")
		}
		digests[k.SHA256] = true
		out = append(out, k)
	}
	return out
}

// bothAdmins reports whether two roles are one to MAIL.
func bothAdmins(a, b string) bool {
	return a == RoleAdmin && b == RoleOperator || a == RoleOperator && b == RoleAdmin
}

func (d *decoder) authKey(t *table, local string, tenants []string) (k AuthKey, complete bool) {
	k = AuthKey{Role: t.oneOf("role", "", RoleOperator, RoleAdmin, RoleUser, RoleAgent), Pos: d.pos(t.location)}
	id, hasID := t.value("id")
	k.ID = id.text
	if hasID && !principalID.MatchString(k.ID) {
		hasID = false
		d.atValue(id.location, fmt.Sprintf(`%s must be 1 to 128 letters, digits, ".", "_", "~" or "-", which %s is not`, id.path, id.shown))
	}
	for _, key := range []string{"id", "role"} {
		if t.values != nil && !t.has(key) {
			t.missing(key, "")
		}
	}
	speaks, hasPeer := d.keyPeer(t, &k)
	if !hasPeer {
		speaks = id
	}
	if k.Role == RoleAgent {
		d.otherSwarm(speaks, local)
	}
	hasTenant := d.keyTenant(t, &k, tenants)
	hasKey := d.keyDigest(t, &k)
	t.refuseUnknown()
	return k, hasTenant && hasID && hasKey && k.Role != ""
}

// otherSwarm refuses the name of this swarm, and one that looks like it, for one that an
// agent's credential speaks for.
func (d *decoder) otherSwarm(speaks value, local string) {
	switch {
	case local == "" || !mail.SwarmNamesCollide(speaks.text, local):
	case speaks.text == local:
		d.atValue(speaks.location, fmt.Sprintf("%s: %q is this swarm itself; an agent's key speaks for another one", speaks.path, local))
	default:
		d.atValue(speaks.location, fmt.Sprintf("%s: %s differs from %q, which is this swarm itself, in case and punctuation only; an agent's key speaks for another one", speaks.path, speaks.shown, local))
	}
}

// keyPeer reads for whom an agent's key speaks, if that is not its id.
func (d *decoder) keyPeer(t *table, k *AuthKey) (v value, ok bool) {
	if v, ok = t.value("peer"); !ok {
		return v, false
	}
	k.Peer = v.text
	d.checkRealm(v, "a peer")
	if k.Role != "" && k.Role != RoleAgent {
		d.atKey(v.location, fmt.Sprintf("%s is for keys of role %q: it names the swarm they speak for", v.path, RoleAgent))
	}
	return v, true
}

// keyTenant reads whose principal a key's is.
func (d *decoder) keyTenant(t *table, k *AuthKey, tenants []string) bool {
	k.Tenant = mail.DefaultTenant
	v, ok := t.value("tenant")
	switch {
	case !ok:
		return !t.has("tenant")
	case !slices.Contains(tenants, v.text):
		f := d.atValue(v.location, fmt.Sprintf("unknown tenant %s; add [tenants.NAME], or leave the line out for tenant %q", v.shown, mail.DefaultTenant))
		f.near(v.text, tenants)
		return false
	case k.Role == RoleOperator && v.text != mail.DefaultTenant:
		d.atValue(v.location, fmt.Sprintf("an operator runs the host and is of tenant %q; role = %q is a tenant's own", mail.DefaultTenant, RoleAdmin))
		return false
	}
	k.Tenant = v.text
	return true
}

func (d *decoder) keyDigest(t *table, k *AuthKey) bool {
	if t.has("key") == t.has("key_sha256") {
		d.atKey(t.location, t.path+" needs exactly one of key and key_sha256")
		t.value("key")
		t.value("key_sha256")
		return false
	}
	if key, ok := t.value("key"); ok {
		d.warnLiteral(key)
		if len(key.text) < minKey {
			d.atValue(key.location, fmt.Sprintf("%s is too short; a key has at least %d characters", key.path, minKey))
			return false
		}
		k.SHA256 = sha256.Sum256([]byte(key.text))
		return true
	}
	digest, err := hex.DecodeString(t.digest("key_sha256"))
	return err == nil && copy(k.SHA256[:], digest) == len(digest) && len(digest) == len(k.SHA256)
}

package egress

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Grant is one line of allow.http: where an agent's requests may go. The zero value grants
// nothing. It is immutable.
type Grant struct {
	// NoKey omits the Idempotency-Key of the host under this grant, for servers that
	// reject it. The guest may then send its own.
	NoKey bool

	target  target
	hosts   hostRule
	methods []string // nil grants all
}

// hostRule selects the hosts that a grant covers.
type hostRule int

const (
	none hostRule = iota
	exact
	subdomains // of the host, not the host itself
	anyName    // every name, no address and not localhost
)

// methods are the methods a guest may use. CONNECT would open a tunnel; TRACE reflects the
// headers that the host adds.
func methods() []string {
	return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
}

// localhost is the only name whose private addresses a grant may name.
const localhost = "localhost"

// ParseGrant reads "[METHOD,METHOD ]scheme://host[:port][/prefix]", for
// instance "https://api.example.com" or "GET,POST https://api.example.com/v1".
//
//   - Without methods, all seven are granted.
//   - Without port, the scheme's own port is.
//   - A prefix ends at a segment: /v1 covers /v1 and /v1/users, not /v10.
//   - "*.example.com" covers every name below example.com, not itself. The
//     name must have a dot.
//   - "https://*" covers every name; an address or localhost must be named.
//     An agent that reads the web needs it, and no one writes it by accident.
//     Private addresses stay out of reach, and a secret cannot be bound to it.
func ParseGrant(s string) (Grant, error) {
	g := Grant{hosts: exact}
	location := s
	if words, rest, ok := strings.Cut(s, " "); ok {
		location = rest
		for m := range strings.SplitSeq(words, ",") {
			if !slices.Contains(methods(), m) {
				return Grant{}, fmt.Errorf("the grant %q: %q is not a method; choose from %s", truncate(s), truncate(m), strings.Join(methods(), ", "))
			}
			g.methods = append(g.methods, m)
		}
	}
	if err := g.parseLocation(location); err != nil {
		return Grant{}, fmt.Errorf("the grant %q: %w", truncate(s), err)
	}
	return g, nil
}

func (g *Grant) parseLocation(s string) error {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return errors.New(`it must be as in "https://api.example.com"`)
	}
	if strings.ContainsAny(rest, "?#") {
		return errors.New("it must not have a query or a fragment")
	}
	authority, path, _ := strings.Cut(rest, "/")
	if below, ok := strings.CutPrefix(rest, "*."); ok {
		g.hosts, rest = subdomains, below
	} else if authority == "*" || strings.HasPrefix(authority, "*:") {
		g.hosts, rest = anyName, "any"+rest[1:]
	}
	t, err := parseTarget(scheme + "://" + rest)
	if err != nil {
		return err
	}
	if g.hosts == subdomains && (t.addr.IsValid() || !strings.Contains(t.host, ".")) {
		return fmt.Errorf("*. must stand before a name with a dot; %s://* covers every name", t.scheme)
	}
	if "/"+path != t.path {
		return fmt.Errorf("its path must be written %s", truncate(t.path))
	}
	g.target = t
	return nil
}

// String is the grant as written in swarm.toml.
func (g Grant) String() string {
	if g.hosts == none {
		return ""
	}
	authority := g.target.authority()
	switch g.hosts {
	case subdomains:
		authority = "*." + authority
	case anyName:
		authority = "*" + strings.TrimPrefix(authority, "any")
	}
	s := g.target.scheme + "://" + authority
	if g.target.path != "/" {
		s += g.target.path
	}
	if g.methods != nil {
		s = strings.Join(g.methods, ",") + " " + s
	}
	return s
}

// Private reports whether the grant names localhost or an address that is not public. Only
// a policy with AllowPrivate reaches these.
func (g Grant) Private() bool {
	return g.hosts == exact && (g.target.host == localhost || g.target.addr.IsValid() && classify(g.target.addr) != public)
}

// covers reports whether the grant allows a request.
func (g Grant) covers(method string, t target) bool {
	return g.coversHost(t) && g.target.scheme == t.scheme && g.target.port == t.port &&
		(g.methods == nil || slices.Contains(g.methods, method)) && hasPathPrefix(g.target.path, t.path)
}

// Includes reports whether the grant allows everything that other allows.
func (g Grant) Includes(other Grant) bool {
	host := g.hosts == other.hosts && g.target.host == other.target.host
	switch {
	case g.hosts == anyName:
		host = other.hosts != exact || g.coversHost(other.target)
	case other.hosts == exact:
		host = g.coversHost(other.target)
	case g.hosts == subdomains && other.hosts == subdomains:
		host = host || strings.HasSuffix(other.target.host, "."+g.target.host)
	}
	return host && g.hosts != none && other.hosts != none && g.target.scheme == other.target.scheme && g.target.port == other.target.port &&
		hasPathPrefix(g.target.path, other.target.path) && (g.methods == nil || other.methods != nil && !slices.ContainsFunc(other.methods,
		func(m string) bool { return !slices.Contains(g.methods, m) }))
}

// Reaches reports whether some request that the grant allows goes to an origin.
func (g Grant) Reaches(origin Grant) bool {
	return g.coversHost(origin.target) && g.target.scheme == origin.target.scheme && g.target.port == origin.target.port
}

func (g Grant) coversHost(t target) bool {
	switch g.hosts {
	case exact:
		return t.host == g.target.host
	case subdomains:
		return !t.addr.IsValid() && strings.HasSuffix(t.host, "."+g.target.host)
	case anyName:
		return !t.addr.IsValid() && t.host != localhost
	}
	return false
}

// hasPathPrefix reports whether a path equals the prefix or is below it.
func hasPathPrefix(prefix, path string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || strings.HasSuffix(prefix, "/") || rest[0] == '/')
}

// findGrant returns the first grant that allows a request.
func findGrant(grants []Grant, method string, t target) (Grant, bool) {
	i := slices.IndexFunc(grants, func(g Grant) bool { return g.covers(method, t) })
	if i < 0 {
		return Grant{}, false
	}
	return grants[i], true
}

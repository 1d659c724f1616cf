package egress

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Grant is one line of allow.http: where an agent's requests may go. The zero
// value grants nothing. It is immutable.
type Grant struct {
	// NoKey keeps the Idempotency-Key of the host out of requests under this
	// grant, for servers that refuse it. The guest may then send its own.
	NoKey bool

	to      target
	hosts   hostRule
	methods []string // nil grants all
}

// hostRule says which hosts a grant covers.
type hostRule int

const (
	none hostRule = iota
	exact
	subdomains // of the host, not itself
	anyName    // every name, no address and not localhost
)

// methods are those a guest may use. CONNECT would open a tunnel, TRACE
// reflects the headers the host adds.
func methods() []string {
	return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
}

// localhost is the one name whose private address a grant may name.
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
				return Grant{}, fmt.Errorf("the grant %q: %q is not a method; choose from %s", cut(s), cut(m), strings.Join(methods(), ", "))
			}
			g.methods = append(g.methods, m)
		}
	}
	if err := g.parseLocation(location); err != nil {
		return Grant{}, fmt.Errorf("the grant %q: %w", cut(s), err)
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
		return fmt.Errorf("its path must be written %s", cut(t.path))
	}
	g.to = t
	return nil
}

// String is the grant as it stands in a swarm.toml.
func (g Grant) String() string {
	if g.hosts == none {
		return ""
	}
	authority := g.to.authority()
	switch g.hosts {
	case subdomains:
		authority = "*." + authority
	case anyName:
		authority = "*" + strings.TrimPrefix(authority, "any")
	}
	s := g.to.scheme + "://" + authority
	if g.to.path != "/" {
		s += g.to.path
	}
	if g.methods != nil {
		s = strings.Join(g.methods, ",") + " " + s
	}
	return s
}

// Private reports whether the grant names localhost or an address that is not
// public, which only a policy with AllowPrivate reaches.
func (g Grant) Private() bool {
	return g.hosts == exact && (g.to.host == localhost || g.to.addr.IsValid() && classify(g.to.addr) != public)
}

// covers reports whether the grant allows a request.
func (g Grant) covers(method string, t target) bool {
	return g.coversHost(t) && g.to.scheme == t.scheme && g.to.port == t.port &&
		(g.methods == nil || slices.Contains(g.methods, method)) && within(g.to.path, t.path)
}

// Includes reports whether the grant allows all that another one does.
func (g Grant) Includes(other Grant) bool {
	host := g.hosts == other.hosts && g.to.host == other.to.host
	switch {
	case g.hosts == anyName:
		host = other.hosts != exact || g.coversHost(other.to)
	case other.hosts == exact:
		host = g.coversHost(other.to)
	case g.hosts == subdomains && other.hosts == subdomains:
		host = host || strings.HasSuffix(other.to.host, "."+g.to.host)
	}
	return host && g.hosts != none && other.hosts != none && g.to.scheme == other.to.scheme && g.to.port == other.to.port &&
		within(g.to.path, other.to.path) && (g.methods == nil || other.methods != nil && !slices.ContainsFunc(other.methods,
		func(m string) bool { return !slices.Contains(g.methods, m) }))
}

func (g Grant) coversHost(t target) bool {
	switch g.hosts {
	case exact:
		return t.host == g.to.host
	case subdomains:
		return !t.addr.IsValid() && strings.HasSuffix(t.host, "."+g.to.host)
	case anyName:
		return !t.addr.IsValid() && t.host != localhost
	}
	return false
}

// within reports whether a path is the prefix or below it.
func within(prefix, path string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || strings.HasSuffix(prefix, "/") || rest[0] == '/')
}

// covering returns the first grant that allows a request.
func covering(grants []Grant, method string, t target) (Grant, bool) {
	i := slices.IndexFunc(grants, func(g Grant) bool { return g.covers(method, t) })
	if i < 0 {
		return Grant{}, false
	}
	return grants[i], true
}

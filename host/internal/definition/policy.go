package definition

import (
	"fmt"
	"slices"

	"skep/host/internal/definition/config"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/egress"
)

// grantFaults lists what is wrong with the grants and secrets of a file.
func grantFaults(cfg *config.Config) config.Faults {
	var faults config.Faults
	for _, s := range cfg.Secrets {
		if _, err := secret(s); err != nil {
			faults = append(faults, cfg.Fault(err.Error(), "secrets", s.Name))
		}
	}
	for _, g := range grantees(cfg) {
		faults = append(faults, httpFaults(cfg, g, allowHTTP, g.allow.HTTP)...)
		faults = append(faults, httpFaults(cfg, g, allowHTTPNoKey, g.allow.HTTPNoKey)...)
	}
	return faults
}

// Warnings lists grants of a file that have no effect. The file has no [Faults].
func Warnings(cfg *config.Config) config.Faults {
	var all config.Faults
	for _, g := range grantees(cfg) {
		web := append(parseGrants(g.allow.HTTPNoKey, true), parseGrants(g.allow.HTTP, false)...)
		for _, s := range cfg.Secrets {
			if slices.Contains(g.allow.Secrets, s.Name) && !reachesAny(web, s.Hosts) {
				all = append(all, cfg.Fault(fmt.Sprintf("the secret %q is never sent: no grant of %s reaches its hosts; add to allow.http: %q",
					s.Name, g.table(), s.Hosts[0]), g.section, g.name, "allow", "secrets"))
			}
		}
	}
	return all
}

// reachesAny reports whether one of the grants reaches one of the origins.
func reachesAny(grants []egress.Grant, origins []string) bool {
	for _, origin := range parseGrants(origins, false) {
		if slices.ContainsFunc(grants, func(g egress.Grant) bool { return g.Reaches(origin) }) {
			return true
		}
	}
	return false
}

// httpFaults lists what is wrong with the grants under one key of an allow table.
func httpFaults(cfg *config.Config, to grantee, key string, grants []string) (faults config.Faults) {
	for _, text := range grants {
		g, err := egress.ParseGrant(text)
		if err == nil && g.Private() && !to.allow.HTTPPrivate {
			err = fmt.Errorf("the grant %q is of a private address; it takes allow = { http_private = true } in %s", text, to.table())
		}
		if err != nil {
			faults = append(faults, cfg.Fault(err.Error(), to.section, to.name, "allow", key))
		}
	}
	return faults
}

func secret(s config.SecretGrant) (egress.Secret, error) {
	return egress.NewSecret(s.Name, s.Value.Reveal(), s.Header, s.Hosts...)
}

// allowOf translates the grants of an agent or action. The file has no [grantFaults].
func allowOf(cfg *config.Config, g grantee) capability.Allow {
	a := g.allow
	web := egress.Policy{Table: g.table(), AllowPrivate: a.HTTPPrivate}
	// The first grant that covers a request counts. Grants without a key come first, so
	// that they can be part of a wider grant.
	web.Grants = append(parseGrants(a.HTTPNoKey, true), parseGrants(a.HTTP, false)...)
	for _, s := range cfg.Secrets {
		if !slices.Contains(a.Secrets, s.Name) {
			continue
		}
		if value, err := secret(s); err == nil {
			web.Secrets = append(web.Secrets, value)
		}
	}
	return capability.Allow{KV: swarm.KVKind(a.KV), LLM: a.LLM, HTTP: web, Secrets: a.Secrets, RetryInDoubt: a.RetryInDoubt}
}

func parseGrants(texts []string, noKey bool) (grants []egress.Grant) {
	for _, text := range texts {
		if g, err := egress.ParseGrant(text); err == nil {
			g.NoKey = noKey
			grants = append(grants, g)
		}
	}
	return grants
}

// includes reports whether one of the grants of a file covers a wanted grant.
func includes(grants []string, wanted string) bool {
	want, err := egress.ParseGrant(wanted)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(grants, func(text string) bool {
		g, err := egress.ParseGrant(text)
		return err == nil && g.Includes(want)
	})
}

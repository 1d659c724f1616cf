package host

import (
	"fmt"
	"slices"

	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/egress"
	"skep/host/internal/swarm"
)

// GrantFaults lists what is wrong with the grants of a file, and with its
// secrets.
func GrantFaults(cfg *config.Config) config.Faults {
	var faults config.Faults
	for _, s := range cfg.Secrets {
		if _, err := secret(s); err != nil {
			faults = append(faults, cfg.Fault(err.Error(), "secrets", s.Name))
		}
	}
	for _, a := range cfg.Agents {
		faults = append(faults, httpFaults(cfg, a, allowHTTP, a.Allow.HTTP)...)
		faults = append(faults, httpFaults(cfg, a, allowHTTPNoKey, a.Allow.HTTPNoKey)...)
	}
	return faults
}

// httpFaults lists what is wrong with the grants under one key of an agent's
// allow table.
func httpFaults(cfg *config.Config, a config.Agent, key string, grants []string) (faults config.Faults) {
	for _, text := range grants {
		g, err := egress.ParseGrant(text)
		if err == nil && g.Private() && !a.Allow.HTTPPrivate {
			err = fmt.Errorf("the grant %q is of a private address; it takes allow = { http_private = true } in [agents.%s]", text, a.Name)
		}
		if err != nil {
			faults = append(faults, cfg.Fault(err.Error(), "agents", a.Name, "allow", key))
		}
	}
	return faults
}

func secret(s config.SecretGrant) (egress.Secret, error) {
	return egress.NewSecret(s.Name, s.Value.Reveal(), s.Header, s.Hosts...)
}

// allow is what an agent is granted, of a file without [GrantFaults].
func allow(cfg *config.Config, a config.Agent) capability.Allow {
	web := egress.Policy{Table: "[agents." + a.Name + "]", AllowPrivate: a.Allow.HTTPPrivate}
	// The first grant that covers a request counts. Those without the key come
	// first, so that they can be a part of another one.
	web.Grants = append(grantsOf(a.Allow.HTTPNoKey, true), grantsOf(a.Allow.HTTP, false)...)
	for _, s := range cfg.Secrets {
		if !slices.Contains(a.Allow.Secrets, s.Name) {
			continue
		}
		if value, err := secret(s); err == nil {
			web.Secrets = append(web.Secrets, value)
		}
	}
	return capability.Allow{KV: swarm.KVKind(a.Allow.KV), HTTP: web, Secrets: a.Allow.Secrets, RetryInDoubt: a.Allow.RetryInDoubt}
}

func grantsOf(texts []string, noKey bool) (grants []egress.Grant) {
	for _, text := range texts {
		if g, err := egress.ParseGrant(text); err == nil {
			g.NoKey = noKey
			grants = append(grants, g)
		}
	}
	return grants
}

// reaches reports whether the grants of a file cover what a module asks for: a
// grant itself, or one within it.
func reaches(grants []string, asked string) bool {
	want, err := egress.ParseGrant(asked)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(grants, func(text string) bool {
		g, err := egress.ParseGrant(text)
		return err == nil && g.Includes(want)
	})
}

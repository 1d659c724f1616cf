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
	for _, h := range holders(cfg) {
		faults = append(faults, httpFaults(cfg, h, allowHTTP, h.allow.HTTP)...)
		faults = append(faults, httpFaults(cfg, h, allowHTTPNoKey, h.allow.HTTPNoKey)...)
	}
	return faults
}

// httpFaults lists what is wrong with the grants under one key of an allow table.
func httpFaults(cfg *config.Config, h holder, key string, grants []string) (faults config.Faults) {
	for _, text := range grants {
		g, err := egress.ParseGrant(text)
		if err == nil && g.Private() && !h.allow.HTTPPrivate {
			err = fmt.Errorf("the grant %q is of a private address; it takes allow = { http_private = true } in %s", text, h.table())
		}
		if err != nil {
			faults = append(faults, cfg.Fault(err.Error(), h.section, h.name, "allow", key))
		}
	}
	return faults
}

func secret(s config.SecretGrant) (egress.Secret, error) {
	return egress.NewSecret(s.Name, s.Value.Reveal(), s.Header, s.Hosts...)
}

// allow is what somebody is granted, of a file without [GrantFaults].
func allow(cfg *config.Config, h holder) capability.Allow {
	a := h.allow
	web := egress.Policy{Table: h.table(), AllowPrivate: a.HTTPPrivate}
	// The first grant that covers a request counts. Those without the key come
	// first, so that they can be a part of another one.
	web.Grants = append(grantsOf(a.HTTPNoKey, true), grantsOf(a.HTTP, false)...)
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

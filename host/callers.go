package host

import (
	"context"
	"fmt"
	"os"
	"time"

	"skep/host/internal/audit"
	"skep/host/internal/auth"
	"skep/host/internal/authority"
	"skep/host/internal/config"
	"skep/host/internal/listen"
	"skep/host/internal/swarm"
)

// saveTokens is how often it is written which tokens were used.
const saveTokens = 10 * time.Minute

// keepTokens writes until ctx ends which tokens were used.
func (h *Host) keepTokens(ctx context.Context) {
	tick := time.NewTicker(saveTokens)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := h.tokens.Save(ctx); err != nil && ctx.Err() == nil {
				h.log.Warn("tokens cannot be written", "err", err)
			}
		}
	}
}

// callers is who can tell who a caller is, in the order in which they are asked.
func (h *Host) callers() (known auth.Apart, err error) {
	keys, err := h.keys()
	if err != nil {
		return known, err
	}
	cfg := h.opt.Config
	chain := auth.Chain{keys, present{h.tokens, cfg}}
	if j := cfg.Auth.JWT; j.Issuer != "" {
		a, err := authority.NewJWT(authority.JWTOptions{
			Issuer: j.Issuer, Audience: j.Audience, Algorithms: j.Algorithms, Keys: j.Keys, URL: j.KeysURL,
			Leeway: j.Leeway, Mapping: mapping(cfg, j.Outsiders), Logger: h.log,
		})
		if err != nil {
			return known, err
		}
		h.outside = append(h.outside, a)
		chain = append(chain, a)
	}
	if e := cfg.Auth.Endpoints; e.Login != "" {
		a, err := authority.NewEndpoints(authority.EndpointsOptions{
			Login: e.Login, TokenInfo: e.TokenInfo, CacheTTL: e.CacheTTL, Mapping: mapping(cfg, e.Outsiders), Logger: h.log,
		})
		if err != nil {
			return known, err
		}
		h.outside = append(h.outside, a)
		chain = append(chain, a)
	}
	return auth.Apart{Authenticator: chain, Operators: keys.Operators()}, nil
}

// present are the issued tokens of tenants that swarm.toml has: one that is taken
// out of it is closed to those as well.
type present struct {
	*auth.Tokens
	cfg *config.Config
}

// Authenticate implements [auth.Authenticator].
func (p present) Authenticate(ctx context.Context, token string) (auth.Principal, error) {
	who, err := p.Tokens.Authenticate(ctx, token)
	if err != nil {
		return auth.Principal{}, err
	}
	if _, ok := p.cfg.Tenant(who.Tenant); !ok {
		return auth.Principal{}, &auth.Unknown{Reason: fmt.Sprintf("it is for tenant %q, which swarm.toml does not have", who.Tenant)}
	}
	return who, nil
}

func mapping(cfg *config.Config, o config.Outsiders) authority.Mapping {
	m := authority.Mapping{
		Tenant: o.Tenant, TenantClaim: o.TenantClaim, RoleClaim: o.RoleClaim, Role: auth.Role(o.Role),
	}
	for _, t := range cfg.Tenants {
		m.Tenants = append(m.Tenants, t.Name)
	}
	if o.Roles != nil {
		m.Roles = make(map[string]auth.Role, len(o.Roles))
		for name, role := range o.Roles {
			m.Roles[name] = auth.Role(role)
		}
	}
	return m
}

// keys are those of the configuration, or the operator's key of this host.
func (h *Host) keys() (*auth.Keys, error) {
	var keys []auth.Key
	a := h.opt.Config.Auth
	for _, k := range a.Keys {
		keys = append(keys, auth.Key{Principal: principal(k), SHA256: k.SHA256})
	}
	if len(keys) > 0 {
		return auth.NewKeys(keys)
	}
	if !listen.Loopback(h.publicAddr.Addr()) && a.JWT.Issuer == "" && a.Endpoints.Login == "" {
		return nil, fmt.Errorf("listen on %s: a host without [[auth.keys]] listens on loopback only; add a key or set [server] listen = \"127.0.0.1:8000\"", h.publicAddr.Addr())
	}
	text, path, made, err := operatorKey(h.opt.DataDir)
	if err != nil {
		return nil, err
	}
	h.warnOfKey(path)
	if made {
		if err := h.audit.Record(audit.Entry{Act: "key.create", Outcome: audit.Done, Target: keyFile}); err != nil {
			return nil, err
		}
	}
	h.keyPath = path
	return auth.NewKeys([]auth.Key{auth.NewKey(auth.Principal{Tenant: swarm.DefaultTenant, Role: auth.Operator, ID: "operator"}, text)})
}

// warnOfKey logs that others than its owner can read the operator's key.
func (h *Host) warnOfKey(path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		h.log.Warn("others on this machine can read the operator's key; chmod 600 the file, and delete it before the next start to get a new one", "file", path)
	}
}

package server

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/api/auth"
	"skep/host/internal/api/listener"
	"skep/host/internal/api/oidc"
	"skep/host/internal/definition/config"
	"skep/host/internal/pathcheck"
	"skep/host/internal/swarm"
)

// tokenSaveInterval is the interval at which the last use of tokens is saved.
const tokenSaveInterval = 10 * time.Minute

// saveTokens saves the last use of tokens at intervals until ctx ends.
func (s *Server) saveTokens(ctx context.Context) {
	tick := time.NewTicker(tokenSaveInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.opt.Tokens.Save(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("tokens cannot be written", "err", err)
			}
		}
	}
}

// authenticator returns the chain of authenticators: keys, issued tokens, JSON Web
// Tokens, endpoints.
func (s *Server) authenticator() (auth.OperatorGuard, error) {
	keys, err := s.keys()
	if err != nil {
		return auth.OperatorGuard{}, err
	}
	cfg := s.opt.Config
	chain := auth.Chain{keys, tenantTokens{s.opt.Tokens, cfg}}
	if j := cfg.Auth.JWT; j.Issuer != "" {
		a, err := oidc.NewJWT(oidc.JWTOptions{
			Issuer: j.Issuer, Audience: j.Audience, Algorithms: j.Algorithms, Keys: j.Keys.Reveal(), URL: j.KeysURL,
			Leeway: j.Leeway, Mapping: mapping(cfg, j.Outsiders), Logger: s.log,
		})
		if err != nil {
			return auth.OperatorGuard{}, err
		}
		s.authorities = append(s.authorities, a)
		chain = append(chain, a)
	}
	if e := cfg.Auth.Endpoints; e.Login != "" {
		a, err := oidc.NewEndpoints(oidc.EndpointsOptions{
			Login: e.Login, TokenInfo: e.TokenInfo, CacheTTL: e.CacheTTL, Mapping: mapping(cfg, e.Outsiders), Logger: s.log,
		})
		if err != nil {
			return auth.OperatorGuard{}, err
		}
		s.authorities = append(s.authorities, a)
		chain = append(chain, a)
	}
	return auth.OperatorGuard{Authenticator: chain, Operators: keys.Operators()}, nil
}

// tenantTokens accepts the issued tokens of the tenants in swarm.toml. A token of
// a tenant that was removed there is refused.
type tenantTokens struct {
	*auth.Tokens
	cfg *config.Config
}

// Authenticate implements [auth.Authenticator].
func (t tenantTokens) Authenticate(ctx context.Context, token string) (auth.Principal, error) {
	who, err := t.Tokens.Authenticate(ctx, token)
	if err != nil {
		return auth.Principal{}, err
	}
	if _, ok := t.cfg.Tenant(who.Tenant); !ok {
		return auth.Principal{}, &auth.Unknown{Reason: fmt.Sprintf("it is for tenant %q, which swarm.toml does not have", who.Tenant)}
	}
	return who, nil
}

func mapping(cfg *config.Config, o config.Outsiders) oidc.Mapping {
	m := oidc.Mapping{
		Tenant: o.Tenant, TenantClaim: o.TenantClaim, RoleClaim: o.RoleClaim, Role: auth.Role(o.Role), Agents: o.Agents,
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

// keys returns the keys of the configuration. A host without keys and external
// auth backends has one key, the operator's, in a file of its data directory.
func (s *Server) keys() (*auth.Keys, error) {
	var keys []auth.Key
	a := s.opt.Config.Auth
	for _, k := range a.Keys {
		keys = append(keys, auth.Key{Principal: principal(k), SHA256: k.SHA256})
	}
	if len(keys) > 0 {
		return auth.NewKeys(keys)
	}
	if !listener.Loopback(s.publicListener.Addr()) && a.JWT.Issuer == "" && a.Endpoints.Login == "" {
		return nil, fmt.Errorf("listen on %s: a host without [[auth.keys]] listens on loopback only; add a key or set [server] listen = \"127.0.0.1:8000\"", s.publicListener.Addr())
	}
	text, path, made, err := operatorKey(s.opt.DataDir)
	if err != nil {
		return nil, err
	}
	s.warnIfReadable(path)
	if made {
		if err := s.opt.Audit.Record(audit.Entry{Act: "key.create", Outcome: audit.Done, Target: operatorKeyFile}); err != nil {
			return nil, err
		}
	}
	s.operatorKeyPath = path
	return auth.NewKeys([]auth.Key{auth.NewKey(auth.Principal{Tenant: swarm.DefaultTenant, Role: auth.Operator, ID: "operator"}, text)})
}

// warnIfReadable logs a warning if other users can read the operator's key.
func (s *Server) warnIfReadable(path string) {
	if info, err := os.Stat(path); err == nil && pathcheck.Grants(info.Mode(), 0o077) {
		s.log.Warn("others on this machine can read the operator's key; chmod 600 the file, and delete it before the next start to get a new one", "file", path)
	}
}

func principal(k config.AuthKey) auth.Principal {
	return auth.Principal{Tenant: cmp.Or(k.Tenant, swarm.DefaultTenant), Role: auth.Role(k.Role), ID: k.ID, Peer: k.Peer}
}

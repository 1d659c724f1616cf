package host

import (
	"cmp"
	"math"

	"skep/host/internal/auth"
	"skep/host/internal/config"
	"skep/host/internal/swarm"
)

// tenants says what the file gives each tenant.
func tenants(cfg *config.Config) map[string]swarm.Tenant {
	out := make(map[string]swarm.Tenant, len(cfg.Tenants))
	for _, t := range cfg.Tenants {
		out[t.Name] = swarm.Tenant{Weight: t.Weight, Quota: swarm.Quota{
			Turns: t.Turns, Tasks: t.Tasks, Queue: t.Queue,
			MessagesPerDay: t.MessagesPerDay, Storage: int64(t.Storage),
			SpendPerDay: budget(t.TokensPerDay, t.USDPerDay),
		}}
	}
	return out
}

// budget is a bound of what models may cost; 0 is none.
func budget(tokens int64, usd float64) swarm.Spend {
	return swarm.Spend{Tokens: tokens, MicroUSD: int64(math.Ceil(usd * 1e6))}
}

// weight is the share of each tenant, 1 for those the file does not name.
func weight(cfg *config.Config) func(tenant string) float64 {
	weights := make(map[string]int, len(cfg.Tenants))
	for _, t := range cfg.Tenants {
		weights[t.Name] = t.Weight
	}
	return func(tenant string) float64 { return float64(max(1, weights[tenant])) }
}

func principal(k config.AuthKey) auth.Principal {
	return auth.Principal{Tenant: cmp.Or(k.Tenant, swarm.DefaultTenant), Role: auth.Role(k.Role), ID: k.ID, Peer: k.Peer}
}

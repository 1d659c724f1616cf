package definition

import (
	"math"

	"skep/host/internal/definition/config"
	"skep/host/internal/swarm"
)

// Tenants are the weights and quotas of a file's tenants, by name.
func Tenants(cfg *config.Config) map[string]swarm.Tenant {
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

// budget is a bound of tokens and cost of models; 0 is unlimited.
func budget(tokens int64, usd float64) swarm.Spend {
	return swarm.Spend{Tokens: tokens, MicroUSD: int64(math.Ceil(usd * 1e6))}
}

// Weights returns the weight of each tenant, 1 for a tenant that is not in the file.
func Weights(cfg *config.Config) func(tenant string) float64 {
	weights := make(map[string]int, len(cfg.Tenants))
	for _, t := range cfg.Tenants {
		weights[t.Name] = t.Weight
	}
	return func(tenant string) float64 { return float64(max(1, weights[tenant])) }
}

package swarm

// Tenant is what a customer of the host is given.
type Tenant struct {
	// Weight is the share of turns and of the processor relative to other
	// tenants, 1 by default. It counts only while there is not enough for all.
	Weight int
	Quota  Quota
}

// Quota bounds what a tenant may have; zero means no limit. What was accepted is
// never dropped for it: turns beyond it wait, posts and sends are refused.
type Quota struct {
	// Turns bounds the turns that run at once, Tasks the tasks.
	Turns, Tasks int
	// Queue bounds the messages that wait in all instances.
	Queue int
	// MessagesPerDay bounds the messages made in a day of UTC, each counted for
	// every recipient.
	MessagesPerDay int64
	// Storage bounds what the store keeps of the tenant, in bytes.
	Storage int64
	// SpendPerDay bounds what calls of models may cost in a day of UTC.
	SpendPerDay Spend
}

// tenants are those that the configuration names; others have no limits.
type tenants map[string]Tenant

func (t tenants) turns(name string) int { return t[name].Quota.Turns }

func (t tenants) weight(name string) float64 { return float64(max(1, t[name].Weight)) }

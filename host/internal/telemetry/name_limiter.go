package telemetry

import "sync"

// Bounds of the agents and tenants that have series of their own: tenants may load
// definitions with ever new names.
const (
	maxAgentLabels  = 200
	maxTenantLabels = 100
)

// otherName stands for all names beyond a bound.
const otherName = "other"

// NameLimiter bounds the names that become values of a label. It is safe for concurrent use.
type NameLimiter struct {
	most  int
	mu    sync.Mutex
	names map[string]bool
}

func newNameLimiter(most int) *NameLimiter { return &NameLimiter{most: most, names: map[string]bool{}} }

// Label returns the name, or "other" for one that is too many.
func (l *NameLimiter) Label(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.names[name] && len(l.names) >= l.most {
		return otherName
	}
	l.names[name] = true
	return name
}

// drop makes room for another name.
func (l *NameLimiter) drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, name)
}

package amp

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"skep/host/internal/gateway"
)

// Limits of what is measured.
const (
	measureTime  = time.Hour // how long a measurement counts
	maxSamples   = 256       // of an agent's capability
	maxMeasured  = 10_000    // capabilities of agents, and messages that work
	p95Quantile  = 0.95
	millisecondF = float64(time.Millisecond)
)

// measures are how long agents took for their capabilities in the last hour, and how much
// they work on. They begin anew with the host. It is safe for concurrent use.
type measures struct {
	mu      sync.Mutex
	samples map[measured][]sample
	// working are the messages without an answer yet; load counts them by agent.
	working map[workKey]work
	load    map[agentKey]int
}

type agentKey struct{ tenant, agent string }

type measured struct {
	agentKey
	capability string
}

type workKey struct{ tenant, realm, id string }

type work struct {
	of    measured
	since time.Time
}

type sample struct {
	at   time.Time
	took time.Duration
	ok   bool
}

func newMeasures() *measures {
	return &measures{samples: map[measured][]sample{}, working: map[workKey]work{}, load: map[agentKey]int{}}
}

// begin notes that an agent works on a message.
func (m *measures) begin(c gateway.Caller, t target, x gateway.Exchange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := workKey{c.Principal.Tenant, c.Realm, x.ID}
	if _, known := m.working[key]; known || x.Duplicate || x.Receipt == nil && x.ID == "" {
		return
	}
	if len(m.working) >= maxMeasured {
		clear(m.working)
		clear(m.load)
	}
	agent := agentKey{c.Principal.Tenant, nameOf(t.agent)}
	m.working[key] = work{measured{agent, t.capability.ID}, x.Accepted}
	m.load[agent]++
}

// end notes an answer. Each message counts once.
func (m *measures) end(c gateway.Caller, x gateway.Exchange, at time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := workKey{c.Principal.Tenant, c.Realm, x.ID}
	w, known := m.working[key]
	if !known {
		return
	}
	delete(m.working, key)
	if m.load[w.of.agentKey]--; m.load[w.of.agentKey] <= 0 {
		delete(m.load, w.of.agentKey)
	}
	if _, has := m.samples[w.of]; !has && len(m.samples) >= maxMeasured {
		clear(m.samples)
	}
	list := append(m.samples[w.of], sample{at, max(0, at.Sub(w.since)), ok})
	m.samples[w.of] = list[max(0, len(list)-maxSamples):]
}

// metrics are what is measured of an agent's capability (M-031). Without a measurement there
// is no rate, as none was seen.
type metrics struct {
	Latency     float64  `json:"latency_ms"` // p95
	SuccessRate *float64 `json:"success_rate,omitempty"`
	Samples     int      `json:"samples"`
	Measured    bool     `json:"measured"`
}

// of returns the metrics of an agent's capability, over the last hour. Without a
// measurement it claims none (D-M9).
func (m *measures) of(tenant, agent, capability string) metrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.metricsOf(measured{agentKey{tenant, agent}, capability})
}

func (m *measures) metricsOf(of measured) (got metrics) {
	var took []time.Duration
	done := 0
	for _, s := range m.samples[of] {
		if time.Since(s.at) > measureTime {
			continue
		}
		took = append(took, s.took)
		if s.ok {
			done++
		}
	}
	if len(took) == 0 {
		return metrics{}
	}
	slices.Sort(took)
	nth := int(math.Ceil(p95Quantile*float64(len(took)))) - 1
	rate := float64(done) / float64(len(took))
	return metrics{float64(took[nth]) / millisecondF, &rate, len(took), true}
}

// loadOf is how many messages an agent works on.
func (m *measures) loadOf(tenant, agent string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.load[agentKey{tenant, agent}]
}

// compare orders agents with a capability: less to do first, then the faster one (M-114).
func (m *measures) compare(tenant, a, b, capability string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Or(
		cmp.Compare(m.load[agentKey{tenant, a}], m.load[agentKey{tenant, b}]),
		cmp.Compare(m.metricsOf(measured{agentKey{tenant, a}, capability}).Latency, m.metricsOf(measured{agentKey{tenant, b}, capability}).Latency),
	)
}

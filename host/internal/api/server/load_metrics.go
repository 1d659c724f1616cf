package server

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skep/host/internal/swarm"
	"skep/host/internal/telemetry"
)

// readTime bounds how long the store is asked for metrics: the others are shown while it is away.
const readTime = 2 * time.Second

// storeMetrics has no family where the store cannot be asked.
func (s *Server) storeMetrics() []telemetry.Family {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	bytes, err := s.opt.StoreSize(ctx)
	if err != nil {
		return nil
	}
	return []telemetry.Family{telemetry.Gauge("skep_store_bytes", "What the store takes, with its log or indexes.", float64(bytes))}
}

// loadMetrics are what waits, what sandboxes take, and what is left of quotas.
func (s *Server) loadMetrics() []telemetry.Family {
	queued := telemetry.Family{Name: "skep_queue_messages", Help: "Messages that stand in queues, by tier. Those of running turns, and timers, are left out.",
		Kind: prometheus.GaugeValue, Labels: []string{"tier"}}
	for i, n := range s.opt.Runtime.CountQueued() {
		queued.Samples = append(queued.Samples, telemetry.Sample{Labels: []string{strconv.Itoa(i + 1)}, Value: float64(n)})
	}
	return []telemetry.Family{
		queued, s.quotaMetrics(),
		telemetry.Gauge("skep_sandbox_memory_bytes", "Memory that sandboxes and images of modules take.", float64(s.opt.Library.SandboxBytes())),
	}
}

// quotaMetrics has the least that any tenant has left of each quota, and with tenants as
// labels what each has. Those beyond the bound of labels share one value, the least.
func (s *Server) quotaMetrics() telemetry.Family {
	left := telemetry.Family{Name: "skep_quota_left_ratio", Help: "What is left of a tenant's quota, from 1 to 0: the least of all tenants, unless they are labels.",
		Kind: prometheus.GaugeValue, Labels: []string{"quota"}}
	tenants := s.opt.Work.Tenants()
	if tenants != nil {
		left.Labels = append(left.Labels, "tenant")
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	least := map[swarm.QuotaLeft]float64{} // by quota and label
	for _, q := range s.opt.Runtime.QuotasLeft(ctx) {
		key := swarm.QuotaLeft{Quota: q.Quota}
		if tenants != nil {
			key.Tenant = tenants.Label(q.Tenant)
		}
		if has, ok := least[key]; !ok || q.Left < has {
			least[key] = q.Left
		}
	}
	for key, value := range least {
		left.Samples = append(left.Samples, telemetry.Sample{Labels: []string{key.Quota, key.Tenant}[:len(left.Labels)], Value: value})
	}
	return left
}

// Bounds of the tasks that are read to count what waits for people, and how long a count is
// shown again.
const (
	questionPage  = 500
	questionPages = 10
	questionAge   = 15 * time.Second
)

// questionCount is what waits for people.
type questionCount struct {
	mu               sync.Mutex
	read             time.Time
	tasks, questions int
	oldest           time.Time // zero for none
}

// questionMetrics has no family where the store cannot be asked.
func (s *Server) questionMetrics() []telemetry.Family {
	m := &s.questions
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.read) >= questionAge {
		ctx, cancel := context.WithTimeout(context.Background(), readTime)
		defer cancel()
		if err := m.count(ctx, s.opt.Runtime, s.opt.Config.Swarm.Name); err != nil {
			return nil
		}
		m.read = now
	}
	var age float64
	if !m.oldest.IsZero() {
		age = max(0, time.Since(m.oldest).Seconds())
	}
	return []telemetry.Family{
		telemetry.Gauge("skep_tasks_paused", "Tasks that wait for people, of all hosts that share the store; more than 5000 are not counted.", float64(m.tasks)),
		telemetry.Gauge("skep_questions", "Calls in them that wait for an answer.", float64(m.questions)),
		telemetry.Gauge("skep_question_oldest_seconds", "How long the oldest of them has waited, 0 for none.", age),
	}
}

// count reads the paused tasks of a swarm.
func (m *questionCount) count(ctx context.Context, of Runtime, swarmName string) error {
	seen, questions, oldest := map[swarm.TaskKey]bool{}, 0, time.Time{}
	var after string
	for range questionPages {
		list, next, err := of.Questions(ctx, swarm.InstanceKey{Swarm: swarmName}, after, questionPage)
		if err != nil {
			return err
		}
		for _, q := range list {
			seen[q.Task] = true
			questions++
			if oldest.IsZero() || q.Since.Before(oldest) {
				oldest = q.Since
			}
		}
		if after = next; after == "" {
			break
		}
	}
	m.tasks, m.questions, m.oldest = len(seen), questions, oldest
	return nil
}

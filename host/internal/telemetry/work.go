package telemetry

import (
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skep/host/internal/swarm"
)

// Work counts and logs what the runtime commits. It implements [swarm.Observer].
type Work struct {
	log    *slog.Logger
	lines  *LineLimiter
	agents *NameLimiter
	// tenants is nil where tenants are no labels.
	tenants *NameLimiter

	turns, cpu, cost, messages, tasks *prometheus.CounterVec

	turnTime, queueTime, memory prometheus.Histogram
	waitTime, taskTime          *prometheus.HistogramVec
}

// NewWork returns an observer that logs to log. With tenantLabels the counters have the tenant
// as a label.
func NewWork(log *slog.Logger, tenantLabels bool) *Work {
	w := &Work{
		log: log, lines: NewLineLimiter(), agents: newNameLimiter(maxAgentLabels),
		turnTime:  prometheus.NewHistogram(Durations("skep_turn_duration_seconds", "Time from the start of a turn to its commit, waits for people included.")),
		queueTime: prometheus.NewHistogram(Durations("skep_turn_queued_seconds", "Time that a turn waited for its slot.")),
		memory:    prometheus.NewHistogram(Sizes("skep_turn_memory_bytes", "Memory of an agent's sandbox at its highest in a turn.")),
		waitTime:  prometheus.NewHistogramVec(Durations("skep_queue_wait_seconds", "Time that a message stood in its queue before its turn, by tier."), []string{"tier"}),
		taskTime:  prometheus.NewHistogramVec(Durations("skep_task_duration_seconds", "Time from the creation of a task to its end, by how it ended."), []string{"state"}),
	}
	if tenantLabels {
		w.tenants = newNameLimiter(maxTenantLabels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		if tenantLabels {
			labels = append(labels, "tenant")
		}
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	w.turns = counter("skep_turns_total", "Turns that have ended, by agent and how: ok, or the cause of the failure.", "agent", "exit")
	w.cpu = counter("skep_turn_cpu_seconds_total", "Computing time of turns, by agent.", "agent")
	w.cost = counter("skep_turn_micro_usd_total", "What models have cost turns, in millionths of a dollar, by agent.", "agent")
	w.messages = counter("skep_messages_total", "Messages that were queued for agents, by type.", "type")
	w.tasks = counter("skep_tasks_total", "Changes of tasks' states, by the state after.", "state")
	return w
}

// counters are the metrics that may have the tenant as a label.
func (w *Work) counters() []*prometheus.CounterVec {
	return []*prometheus.CounterVec{w.turns, w.cpu, w.cost, w.messages, w.tasks}
}

// Register adds the metrics to a registry.
func (w *Work) Register(to prometheus.Registerer) error {
	var errs []error
	for _, c := range w.counters() {
		errs = append(errs, to.Register(c))
	}
	for _, c := range []prometheus.Collector{w.turnTime, w.queueTime, w.memory, w.waitTime, w.taskTime} {
		errs = append(errs, to.Register(c))
	}
	return errors.Join(errs...)
}

// Tenants bounds the tenants that are values of labels; nil means that none is.
func (w *Work) Tenants() *NameLimiter { return w.tenants }

// DropTenant forgets what was counted for a tenant, and its name.
func (w *Work) DropTenant(tenant string) {
	if w.tenants == nil {
		return
	}
	for _, c := range w.counters() {
		c.DeletePartialMatch(prometheus.Labels{"tenant": tenant})
	}
	w.tenants.drop(tenant)
}

// count adds to a counter with the values of its labels, to which the tenant may belong.
func (w *Work) count(c *prometheus.CounterVec, n float64, tenant string, labels ...string) {
	if w.tenants != nil {
		labels = append(labels, w.tenants.Label(tenant))
	}
	c.WithLabelValues(labels...).Add(n)
}

// Committed implements [swarm.Observer].
func (w *Work) Committed(c swarm.Change) {
	for i := range c.Queued {
		w.count(w.messages, 1, c.Task.Tenant, string(c.Queued[i].Type))
	}
	if c.Turn != nil && !c.Turn.Suspended {
		w.countTurn(c.Task, c.Turn)
	}
	if c.To != c.From {
		w.countState(c)
	}
}

func (w *Work) countTurn(task swarm.TaskKey, turn *swarm.CommittedTurn) {
	exit := "ok"
	if f := turn.Failure; f != nil {
		exit = f.Cause
		attrs := []any{"agent", turn.Agent, "turn", turn.N, "cause", f.Cause, "key", limitKey(turn.Agent, f.Limit)}
		if n := len(turn.ModelFailures); n > 0 {
			attrs = append(attrs, "model", turn.ModelFailures[n-1].Model, "model_cause", turn.ModelFailures[n-1].Cause)
		}
		w.logLine(task, "a turn has failed", f.Cause, attrs...)
	}
	agent := w.agents.Label(turn.Agent)
	w.count(w.turns, 1, task.Tenant, agent, exit)
	w.count(w.cpu, turn.Usage.CPU.Seconds(), task.Tenant, agent)
	if usd := turn.Usage.MicroUSD; usd > 0 {
		w.count(w.cost, float64(usd), task.Tenant, agent)
	}
	if turn.Memory > 0 {
		w.memory.Observe(float64(turn.Memory))
	}
	if turn.Waited > 0 {
		w.waitTime.WithLabelValues(strconv.Itoa(turn.Tier)).Observe(turn.Waited.Seconds())
	}
	w.turnTime.Observe(turn.Wall.Seconds())
	w.queueTime.Observe(turn.Queued.Seconds())
}

// limitKey is the key of swarm.toml that holds the limit of a failure, empty for none.
func limitKey(agent, limit string) string {
	if limit == "" {
		return ""
	}
	return "[agents." + agent + "] " + limit
}

func (w *Work) countState(c swarm.Change) {
	w.count(w.tasks, 1, c.Task.Tenant, string(c.To))
	took := max(0, c.At.Sub(c.Created))
	switch {
	case c.To == swarm.StatePaused:
		var agent string
		if c.Turn != nil {
			agent = c.Turn.Agent
		}
		w.logLine(c.Task, "a task waits for a person", "", "agent", agent)
	case c.To.Ended():
		w.taskTime.WithLabelValues(string(c.To)).Observe(took.Seconds())
		if c.To == swarm.StateFailed || c.To == swarm.StateTimedOut {
			w.logLine(c.Task, "a task has failed", string(c.To), "state", c.To, "after", took.Round(time.Millisecond).String())
		}
	}
}

// logLine logs a line about a task, unless its tenant has had too many of its kind.
func (w *Work) logLine(task swarm.TaskKey, text, cause string, attrs ...any) {
	skipped, ok := w.lines.Admit(LineKind{task.Tenant, text, cause}, time.Now())
	if !ok {
		return
	}
	attrs = append([]any{"tenant", task.Tenant, "swarm", task.Swarm, "task_id", task.Task}, attrs...)
	if skipped > 0 {
		attrs = append(attrs, "lines_skipped", skipped)
	}
	w.log.Info(text, attrs...)
}

package telemetry

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skep/host/internal/swarm"
)

// Work counts and logs what the runtime commits. It implements [swarm.Observer].
type Work struct {
	log   *slog.Logger
	lines *lineLimiter
	names *nameLimiter

	turns     *prometheus.CounterVec
	cpu       *prometheus.CounterVec
	turnTime  prometheus.Histogram
	queueTime prometheus.Histogram
	messages  *prometheus.CounterVec
	tasks     *prometheus.CounterVec
	taskTime  *prometheus.HistogramVec
}

// NewWork returns an observer that logs to log.
func NewWork(log *slog.Logger) *Work {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &Work{
		log: log, lines: newLineLimiter(), names: newNameLimiter(),
		turns:     counter("skep_turns_total", "Turns that have ended, by agent and how: ok, or the cause of the failure.", "agent", "exit"),
		cpu:       counter("skep_turn_cpu_seconds_total", "Computing time of turns, by agent.", "agent"),
		turnTime:  prometheus.NewHistogram(Durations("skep_turn_duration_seconds", "Time from the start of a turn to its commit, waits for people included.")),
		queueTime: prometheus.NewHistogram(Durations("skep_turn_queued_seconds", "Time that a turn waited for its slot.")),
		messages:  counter("skep_messages_total", "Messages that were queued for agents, by type.", "type"),
		tasks:     counter("skep_tasks_total", "Changes of tasks' states, by the state after.", "state"),
		taskTime:  prometheus.NewHistogramVec(Durations("skep_task_duration_seconds", "Time from the creation of a task to its end, by how it ended."), []string{"state"}),
	}
}

// Register adds the metrics to a registry.
func (w *Work) Register(to prometheus.Registerer) error {
	var errs []error
	for _, c := range []prometheus.Collector{w.turns, w.cpu, w.turnTime, w.queueTime, w.messages, w.tasks, w.taskTime} {
		errs = append(errs, to.Register(c))
	}
	return errors.Join(errs...)
}

// Committed implements [swarm.Observer].
func (w *Work) Committed(c swarm.Change) {
	for i := range c.Queued {
		w.messages.WithLabelValues(string(c.Queued[i].Type)).Inc()
	}
	if c.Turn != nil && !c.Turn.Waits {
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
		w.logLine(task, "a turn has failed", f.Cause, "agent", turn.Agent, "turn", turn.N, "cause", f.Cause, "key", limitKey(turn.Agent, f.Limit))
	}
	agent := w.names.label(turn.Agent)
	w.turns.WithLabelValues(agent, exit).Inc()
	w.cpu.WithLabelValues(agent).Add(turn.Usage.CPU.Seconds())
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
	w.tasks.WithLabelValues(string(c.To)).Inc()
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
	skipped, ok := w.lines.admit(lineKind{task.Tenant, text, cause}, time.Now())
	if !ok {
		return
	}
	attrs = append([]any{"tenant", task.Tenant, "swarm", task.Swarm, "task_id", task.Task}, attrs...)
	if skipped > 0 {
		attrs = append(attrs, "lines_skipped", skipped)
	}
	w.log.Info(text, attrs...)
}

// maxAgentLabels bounds the agents that have series of their own: tenants may load
// definitions with ever new names.
const maxAgentLabels = 200

// nameLimiter bounds the names of agents that become values of a label.
type nameLimiter struct {
	mu    sync.Mutex
	names map[string]bool
}

func newNameLimiter() *nameLimiter { return &nameLimiter{names: map[string]bool{}} }

// label returns the name, or "other" for one that is too many.
func (l *nameLimiter) label(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.names[name] && len(l.names) >= maxAgentLabels {
		return "other"
	}
	l.names[name] = true
	return name
}

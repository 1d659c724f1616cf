package server

import (
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skep/host/internal/diskspace"
	"skep/host/internal/telemetry"
)

// registerMetrics makes the registry of the host's metrics.
func (s *Server) registerMetrics() (*prometheus.Registry, error) {
	all := prometheus.NewRegistry()
	reports, tenants := s.opt.Runtime.Metrics(), s.opt.Work.Tenants()
	return all, errors.Join(s.api.RegisterMetrics(all), s.opt.Work.Register(all), s.opt.Commits.Register(all), s.opt.Traces.Register(all), s.opt.Log.Register(all),
		all.Register(telemetry.Collector(s.families)),
		all.Register(telemetry.Collector(func() []telemetry.Family { return telemetry.AgentMetrics(reports, tenants) })))
}

// families are the numbers that the parts of the host keep.
func (s *Server) families() []telemetry.Family {
	return slices.Concat(s.retentionMetrics(), s.listenerMetrics(), s.peerMetrics(), s.deliveryMetrics(), s.modelMetrics(), s.toolMetrics(), s.opMetrics(), diskMetrics(s.opt.DataDir, diskspace.Of), s.clusterMetrics(),
		s.storeMetrics(), s.loadMetrics(), s.questionMetrics())
}

// opMetrics counts the calls of agents and actions by op and by code, so that
// dashboards show refusals.
func (s *Server) opMetrics() []telemetry.Family {
	ops := telemetry.Family{Name: "skep_ops_total", Help: "Calls of ops by agents and actions that have ended, by how.",
		Kind: prometheus.CounterValue, Labels: []string{"op", "code"}}
	for _, e := range s.opt.Library.Executor().OpCounter().All() {
		ops.Samples = append(ops.Samples, telemetry.Sample{Labels: []string{e.Op.String(), e.Code.String()}, Value: float64(e.N)})
	}
	denied := telemetry.Family{Name: "skep_denied_total", Help: "Calls of ops that no grant allows, by agent.",
		Kind: prometheus.CounterValue, Labels: []string{"agent", "op"}}
	for _, d := range s.opt.Library.Executor().OpCounter().Denied() {
		denied.Samples = append(denied.Samples, telemetry.Sample{Labels: []string{d.Agent, d.Op.String()}, Value: float64(d.N)})
	}
	return []telemetry.Family{ops, denied,
		telemetry.Counter("skep_turns_hibernated_total", "Times that a waiting turn gave its sandbox up; it is repeated when the answer is there.", s.opt.Library.Executor().WaitingTurns().CountHibernations())}
}

func (s *Server) retentionMetrics() []telemetry.Family {
	n := s.opt.Retention.Stats()
	return []telemetry.Family{
		telemetry.Counter("skep_pruned_records_total", "Records of turns that were kept long enough.", n.Records),
		telemetry.Counter("skep_pruned_tasks_total", "Tasks that were kept long enough.", n.Tasks),
		telemetry.Counter("skep_dropped_modules_total", "Copies of modules that nothing named any more.", n.Modules),
	}
}

func (s *Server) modelMetrics() []telemetry.Family {
	n := s.opt.Library.ModelStats()
	return append(s.eachModelMetrics(),
		telemetry.Counter("skep_llm_calls_total", "Calls of models that left agents.", n.Calls),
		telemetry.Counter("skep_llm_failures_total", "Those of them that got no answer.", n.Failures),
		telemetry.Counter("skep_llm_refused_total", "Those of them that were not made, because their model rested after failures.", n.Refused),
		telemetry.Counter("skep_llm_tokens_total", "Tokens of models, as far as known; else what was reserved.", n.Tokens),
		telemetry.Counter("skep_llm_micro_usd_total", "What models have cost, in millionths of a dollar.", n.MicroUSD),
	)
}

// eachModelMetrics counts the calls of each model of the file.
func (s *Server) eachModelMetrics() []telemetry.Family {
	family := func(name, help string, labels ...string) telemetry.Family {
		return telemetry.Family{Name: name, Help: help, Kind: prometheus.CounterValue, Labels: append([]string{"model"}, labels...)}
	}
	requests := family("skep_llm_requests_total", "Calls of models that have ended, by model and how: ok, or what kind of failure.", "result")
	tokens := family("skep_llm_model_tokens_total", "Tokens by model: input and output as charged, reserved where a failed call may be.", "direction")
	cost := family("skep_llm_model_micro_usd_total", "What each model has cost, in millionths of a dollar.")
	for _, use := range s.opt.Library.ModelUses() {
		add := func(to *telemetry.Family, n int64, labels ...string) {
			to.Samples = append(to.Samples, telemetry.Sample{Labels: append([]string{use.Model}, labels...), Value: float64(n)})
		}
		for result, n := range use.Requests {
			add(&requests, n, result)
		}
		add(&tokens, use.Input, "input")
		add(&tokens, use.Output, "output")
		add(&tokens, use.Reserved, "reserved")
		add(&cost, use.MicroUSD)
	}
	return []telemetry.Family{requests, tokens, cost}
}

func (s *Server) toolMetrics() []telemetry.Family {
	n := s.opt.Library.ToolStats()
	return []telemetry.Family{
		telemetry.Counter("skep_mcp_sessions_total", "Sessions with MCP servers that were opened.", n.Sessions),
		telemetry.Counter("skep_mcp_calls_total", "Calls of tools of MCP servers.", n.Calls),
		telemetry.Counter("skep_mcp_failures_total", "Those of them that failed.", n.Failures),
	}
}

func (s *Server) listenerMetrics() []telemetry.Family {
	n := s.publicListener.Counts()
	tasks, messages := s.opt.Runtime.CountLoad()
	all := []telemetry.Family{
		telemetry.Counter("skep_connections_refused_total", "Connections that were one too many.", n.Refused),
		telemetry.Counter("skep_connections_evicted_total", "Connections without a request that had to make room for others.", n.Evicted),
		telemetry.Counter("skep_audit_failures_total", "Writes to the audit log that failed.", s.opt.Audit.Failures()),
		telemetry.Gauge("skep_connections", "Connections that are open.", float64(n.Open)),
		telemetry.Gauge("skep_tasks_running", "Tasks that run.", float64(tasks)),
		telemetry.Gauge("skep_queue_depth", "Messages that wait for agents of running tasks.", float64(messages)),
		telemetry.Gauge("skep_agents_resting", "Agents whose turns are not run for a while, because turn after turn used up its computing limits.", float64(s.opt.Runtime.CountResting())),
		telemetry.Gauge("skep_agents_quarantined", "Agents that do not run, because the host died in their turns.", float64(len(s.opt.Library.Confined()))),
		telemetry.Gauge("skep_tasks_damaged", "Running tasks that cannot be read and are set aside.", float64(s.opt.Runtime.CountDamaged())),
	}
	if s.certs != nil {
		all = append(all, telemetry.Gauge("skep_certificate_expires_seconds", "How long the certificate in use is valid.", time.Until(s.certs.Expires()).Truncate(time.Second).Seconds()))
	}
	return all
}

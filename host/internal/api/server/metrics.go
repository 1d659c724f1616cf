package server

import (
	"slices"
	"time"

	"skep/host/internal/api/rest"
)

// Counters returns the host's counters for /metrics.
func (s *Server) Counters() []rest.Counter {
	return slices.Concat(s.retentionCounters(), s.listenerCounters(), s.peerCounters(), s.deliveryCounters(), s.modelCounters(), s.toolCounters(), s.opCounters())
}

// Gauges returns the host's gauges for /metrics.
func (s *Server) Gauges() []rest.Gauge {
	return slices.Concat(s.listenerGauges(), s.peerGauges(), s.deliveryGauges())
}

// opCounters counts the calls of agents and actions by op and by code, so that
// dashboards show refusals.
func (s *Server) opCounters() []rest.Counter {
	ops := []rest.OpValue{}
	for _, e := range s.opt.Library.Executor().OpCounter().All() {
		ops = append(ops, rest.OpValue{Op: e.Op.String(), Code: e.Code.String(), Value: e.N})
	}
	return []rest.Counter{{Name: "skep_ops_total", Help: "Calls of ops by agents and actions that have ended, by how.", Ops: ops}}
}

func (s *Server) retentionCounters() []rest.Counter {
	n := s.opt.Retention.Stats()
	return []rest.Counter{
		{Name: "skep_pruned_records_total", Help: "Records of turns that were kept long enough.", Value: n.Records},
		{Name: "skep_pruned_tasks_total", Help: "Tasks that were kept long enough.", Value: n.Tasks},
		{Name: "skep_dropped_modules_total", Help: "Copies of modules that nothing named any more.", Value: n.Modules},
	}
}

func (s *Server) modelCounters() []rest.Counter {
	n := s.opt.Library.ModelStats()
	return []rest.Counter{
		{Name: "skep_llm_calls_total", Help: "Calls of models that left agents.", Value: n.Calls},
		{Name: "skep_llm_failures_total", Help: "Those of them that got no answer.", Value: n.Failures},
		{Name: "skep_llm_refused_total", Help: "Those of them that were not made, because their model rested after failures.", Value: n.Refused},
		{Name: "skep_llm_tokens_total", Help: "Tokens of models, as far as known; else what was reserved.", Value: n.Tokens},
		{Name: "skep_llm_micro_usd_total", Help: "What models have cost, in millionths of a dollar.", Value: n.MicroUSD},
	}
}

func (s *Server) toolCounters() []rest.Counter {
	n := s.opt.Library.ToolStats()
	return []rest.Counter{
		{Name: "skep_mcp_sessions_total", Help: "Sessions with MCP servers that were opened.", Value: n.Sessions},
		{Name: "skep_mcp_calls_total", Help: "Calls of tools of MCP servers.", Value: n.Calls},
		{Name: "skep_mcp_failures_total", Help: "Those of them that failed.", Value: n.Failures},
	}
}

func (s *Server) listenerCounters() []rest.Counter {
	n := s.publicListener.Counts()
	return []rest.Counter{
		{Name: "skep_connections_refused_total", Help: "Connections that were one too many.", Value: n.Refused},
		{Name: "skep_connections_evicted_total", Help: "Connections without a request that had to make room for others.", Value: n.Evicted},
		{Name: "skep_audit_failures_total", Help: "Writes to the audit log that failed.", Value: s.opt.Audit.Failures()},
	}
}

func (s *Server) listenerGauges() []rest.Gauge {
	all := []rest.Gauge{
		{Name: "skep_connections", Help: "Connections that are open.", Value: int64(s.publicListener.Counts().Open)},
		{Name: "skep_agents_resting", Help: "Agents whose turns are not run for a while, because turn after turn used up its computing limits.", Value: int64(s.opt.Runtime.CountResting())},
		{Name: "skep_tasks_damaged", Help: "Running tasks that cannot be read and are set aside.", Value: int64(s.opt.Runtime.CountDamaged())},
	}
	if s.certs != nil {
		left := time.Until(s.certs.Expires())
		all = append(all, rest.Gauge{Name: "skep_certificate_expires_seconds", Help: "How long the certificate in use is valid.", Value: int64(left / time.Second)})
	}
	return all
}

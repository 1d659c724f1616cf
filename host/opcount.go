package host

import "skep/host/internal/rest"

// opCounters has the calls of agents and actions, as an operator's dashboard takes
// them: what is refused stands out by its code.
func (h *Host) opCounters() []rest.Counter {
	ops := []rest.OpValue{}
	for _, e := range h.defs.exec.Tally().All() {
		ops = append(ops, rest.OpValue{Op: e.Op.String(), Code: e.Code.String(), Value: e.N})
	}
	return []rest.Counter{{Name: "skep_ops_total", Help: "Calls of ops by agents and actions that have ended, by how.", Ops: ops}}
}

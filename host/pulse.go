package host

import (
	"cmp"
	"os"
	"strings"

	"skep/host/internal/api/audit"
	"skep/host/internal/api/auth"
	"skep/host/internal/telemetry/pulse"
)

// newPulse returns the feed of a host, which is named as the other hosts that share its store
// know it, or else as its machine.
func newPulse(opt Options) *pulse.Ring {
	return pulse.NewRing(nameOf(opt), pulse.DefaultSize)
}

func nameOf(opt Options) string {
	machine, _ := os.Hostname() // the name stays empty
	return cmp.Or(opt.Config.Cluster.Advertise, machine)
}

// publishEntry publishes an entry of the audit log, without its reason, which may quote what a
// caller has sent. What an operator does concerns the host, whatever tenant he belongs to.
func (h *Host) publishEntry(e audit.Entry) {
	if e.Act == audit.ActHeads {
		return // it is no act of a user
	}
	event := pulse.Event{
		Kind: pulse.Audit, Time: e.Time.UTC(), Tenant: e.Tenant, Act: e.Act, Outcome: e.Outcome,
		Principal: e.Principal, Target: e.Target, RequestID: e.RequestID, Count: e.Count, Cause: e.Cause, Key: e.Key,
	}
	if strings.HasPrefix(e.Principal, string(auth.Operator)+":") {
		event.Tenant = ""
	}
	switch {
	case e.Act == "config.reload":
		event.Kind = pulse.Reload
	case e.Outcome == audit.Refused:
		event.Kind = pulse.Refusal
	}
	h.pulse.Publish(event)
}

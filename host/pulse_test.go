package host

import (
	"context"
	"testing"

	"skep/host/internal/api/audit"
	"skep/host/internal/telemetry/pulse"
)

// What is recorded in the audit log comes to the feed without its reason and address, and what an
// operator does belongs to no tenant.
func TestPublishEntry(t *testing.T) {
	t.Parallel()
	h := &Host{pulse: pulse.NewRing("here", 8)}
	for _, e := range []audit.Entry{
		{Act: "request", Outcome: audit.Refused, Tenant: "acme", Principal: "user:eve", Target: "GET /status", Reason: "planted", Cause: "quota", Key: "[tenants.acme] tasks", Address: "planted", Count: 3},
		{Act: "tenant.erase", Outcome: audit.Done, Tenant: "acme", Principal: "operator:ops", Target: "bolt"},
		{Act: "config.reload", Outcome: audit.Failed, Target: "hive", Reason: "planted"},
	} {
		h.publishEntry(e)
	}
	r := h.pulse.NewReader(h.pulse.ID(0), pulse.Filter{})
	defer r.Close()
	_, list, err := r.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var got []pulse.Event
	for _, e := range list {
		got = append(got, e.Event)
	}
	want := []pulse.Event{
		{Kind: pulse.Refusal, Act: "request", Outcome: "refused", Tenant: "acme", Principal: "user:eve", Target: "GET /status", Cause: "quota", Key: "[tenants.acme] tasks", Count: 3},
		{Kind: pulse.Audit, Act: "tenant.erase", Outcome: "done", Principal: "operator:ops", Target: "bolt"},
		{Kind: pulse.Reload, Act: "config.reload", Outcome: "failed", Target: "hive"},
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

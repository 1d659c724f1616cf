package sqlite

import (
	"errors"
	"testing"

	"skep/host/internal/quarantine"
	"skep/host/internal/store/pgtest"
)

// TestSharedQuarantineVersion: a change of the quarantine raises its version in one group with it, and so
// does the end of an erasure, before which a host may have read the tenant's names again.
func TestSharedQuarantineVersion(t *testing.T) {
	t.Parallel()
	s := openShared(t, pgtest.Schema(t))
	c := quarantine.Confined{Agent: quarantine.Agent{Tenant: "acme", Swarm: "hive", Name: "math"}, Since: testTime, Why: "why"}
	if err := s.ConfineAgent(t.Context(), c); err != nil || versionOf(t, s, QuarantineVersion) != 1 {
		t.Errorf("ConfineAgent() = %v, the version is %d", err, versionOf(t, s, QuarantineVersion))
	}
	if ok, err := s.ReleaseAgent(t.Context(), c.Agent); !ok || err != nil || versionOf(t, s, QuarantineVersion) != 2 {
		t.Errorf("ReleaseAgent() = %v, %v, the version is %d", ok, err, versionOf(t, s, QuarantineVersion))
	}
	if err := s.Erase(t.Context(), "acme"); err != nil || versionOf(t, s, QuarantineVersion) != 3 || versionOf(t, s, TokensVersion) != 1 {
		t.Errorf("Erase() = %v, the versions are %d and %d", err, versionOf(t, s, QuarantineVersion), versionOf(t, s, TokensVersion))
	}
	s.setErasing("acme", true)
	if err := s.ConfineAgent(t.Context(), c); !errors.Is(err, quarantine.ErrErasing) {
		t.Errorf("ConfineAgent() of a tenant that is being erased = %v", err)
	}
}

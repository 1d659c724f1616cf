package mcp

import (
	"context"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
)

// A session whose client shows a new credential while the old one is checked goes on.
func TestRenewalDuringACheck(t *testing.T) {
	t.Parallel()
	all := newSessions(4, false, time.Hour)
	alice := gatewaytest.User("a", "alice")
	s := &session{id: "s1", owner: principal(alice), tenant: "a", all: all}
	s.recheck = func(context.Context) bool {
		renewed := alice
		renewed.Recheck = func(context.Context) bool { return true }
		if _, ok := all.acquire("s1", renewed); !ok {
			t.Error("the session is gone")
		}
		return false
	}
	all.byID[s.id] = s
	all.recheck(t.Context())
	if _, ok := all.acquire("s1", gateway.Caller{Principal: alice.Principal}); !ok {
		t.Error("the session ended with a credential that its client had replaced")
	}
}

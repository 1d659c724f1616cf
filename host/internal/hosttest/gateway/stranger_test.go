package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// TestStrangersWithLongNames (G-014): two strangers whose names are too long for a realm's
// have an address each, that is the same after a restart: a repeat is the first one's task,
// the agent's answer reaches it, and the other stranger has a task of its own.
func TestStrangersWithLongNames(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("l", 62)
	const key, otherKey, refusedKey = "the-key-of-a-long-stranger", "the-key-of-another-stranger", "the-key-of-one-not-admitted"
	agentKey := func(id, key string) string {
		return "[[auth.keys]]\nid = \"" + id + "\"\nrole = \"agent\"\ntenant = \"guests\"\nkey = \"" + key + "\"\n"
	}
	s := hosttest.NewSite(t, strings.Replace(file("hive", agentKey(name+"-a", key)+agentKey(name+"-b", otherKey)+agentKey("mob", refusedKey)),
		"[gateways.a2a]\n", "[tenants.guests]\n[gateways.a2a]\nadmit = [\"lll*\"]\n", 1))
	status, first := sendA2A(t, s, key, "boss", "m1", "hello")
	if status != http.StatusOK || !strings.Contains(first, "hello") {
		t.Fatalf("a stranger gets %d: %s", status, first)
	}
	if _, body := sendA2A(t, s, refusedKey, "boss", "m1", "hello"); strings.Contains(body, "hello") {
		t.Errorf("one that is not admitted gets %s", body)
	}
	s.Restart()
	if _, again := sendA2A(t, s, key, "boss", "m1", "hello"); again != first {
		t.Errorf("the repeat after a restart is %s, not %s", again, first)
	}
	if _, other := sendA2A(t, s, otherKey, "boss", "m1", "hello"); other == first || !strings.Contains(other, "hello") {
		t.Errorf("another stranger gets %s", other)
	}
}

package narrowing

import (
	"strings"
	"testing"
)

// Who may look for other swarms is the file's to say, on the day of the turn.
func TestDiscoveryIsTheFiles(t *testing.T) {
	t.Parallel()
	home := testFile(t, strings.Replace(grants, "breakpoint_tools", "enable_interswarm = true\nbreakpoint_tools", 1))
	out := testFile(t, strings.Replace(grants, "breakpoint_tools", "enable_interswarm = true\nallow_agent_discovery = true\nbreakpoint_tools", 1))
	asks := []byte(strings.Replace(string(single(`"sha256":"`+digest+`"`)), `"name"`, `"enable_interswarm":true,"allow_agent_discovery":true,"name"`, 1))
	if _, err := home.Admit(asks); err == nil || !strings.Contains(err.Error(), "swarm.allow_agent_discovery: the operator's file does not grant it") {
		t.Errorf("a definition that asks for more: %v", err)
	}
	x, err := out.Admit(asks)
	if err != nil || !x.Swarm.AllowAgentDiscovery {
		t.Fatalf("%+v, %v", x.Swarm, err)
	}
	if home.Narrow(x, false).Swarm.AllowAgentDiscovery || !out.Narrow(x, false).Swarm.AllowAgentDiscovery {
		t.Error("what the file grants today does not count")
	}
}

package plan

import (
	"maps"
	"strings"
	"testing"
)

// TestParts: hosts have the same parts unless a reload can take over in what they differ, but for secrets.
func TestParts(t *testing.T) {
	t.Parallel()
	const peer = "[peers.depot]\nbase_url = \"https://d.example\"\n[tenants"
	for _, c := range []struct{ from, to, differs string }{
		{"schema", "# a comment\nschema", ""},
		{`kv = "agent"`, `kv = "task"`, "grant boss.kv"},
		{"the secret", "another", ""},
		{"tasks = 5", "tasks = 6", "limit tenants.acme.tasks"},
		{"tasks = 5", "tasks = 5\nweight = 2", ""},
		{"[tenants", "[server]\ndebug = true\n[tenants", ""},
		{"[tenants", "[limits]\ntask_messages = 0\n[tenants", "limit limits.task_messages"},
		{"[tenants", peer, "peer depot"},
	} {
		was, is := Parts(parse(t, before)), Parts(parse(t, strings.Replace(before, c.from, c.to, 1)))
		differs := ""
		for name := range is {
			if was[name] != is[name] {
				differs += name
			}
		}
		if differs != c.differs || maps.Equal(was, is) != (differs == "") {
			t.Errorf("%q for %q differs in %q, want %q", c.to, c.from, differs, c.differs)
		}
	}
}

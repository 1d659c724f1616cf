package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// otherKey is a second user's key.
const otherKey = "a-key-for-somebody-else"

// sdkPrograms builds the agent of both levels.
func sdkPrograms() (module, program string, err error) {
	if module, err = build("./guest/sdk", "sdk.wasm", true); err != nil {
		return "", "", err
	}
	program, err = build("./guest/sdk", "sdk", false)
	return module, program, err
}

// modelSwarm is a swarm of one agent, of a source file:FILE or exec:FILE, that asks
// a model at an address, with more lines for its [limits]. A process has all turns of
// a tenant in it, and so more memory than a sandbox may have.
func modelSwarm(source, wire, at string, limits ...string) string {
	trusted := ""
	if strings.HasPrefix(source, "exec:") {
		trusted = "trusted = true\nlimits = { memory = \"1GiB\" }\n"
	}
	return fmt.Sprintf(`schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = %q
%senable_entrypoint = true
can_complete_tasks = true
allow = { llm = ["default"], kv = "agent" }
[models.default]
provider = %q
base_url = %q
model = "m"
allow_private = true
timeout = "10m"
retries = 0
[[auth.keys]]
id = "bench"
role = "user"
key = %q
[[auth.keys]]
id = "other"
role = "user"
key = %q
[limits]
queue = 0
%s
`, source, trusted, wire, at, benchKey, otherKey, strings.Join(limits, "\n"))
}

// sourceOf names a file as an agent's source.
func sourceOf(kind, path string) string { return kind + ":" + filepath.ToSlash(path) }

// bodyOf is the body of a POST /message with a text.
func bodyOf(text string) string { return fmt.Sprintf(`{"body":%q,"subject":"q"}`, text) }

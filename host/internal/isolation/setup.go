package isolation

import (
	"crypto/rand"
	"fmt"
)

// keys are the callers' keys.
type keys struct{ victim, hostile, boss string }

func newKeys() keys { return keys{secret(), secret(), secret()} }

// secret is a text that cannot be guessed.
func secret() string { return "skep-isolation-" + rand.Text() }

// Quotas of the hostile tenant. The file names them once more.
const (
	hostileTasks = 4
	hostileQueue = 8
)

// swarmFile is the swarm that both tenants have, with all that a file can grant
// without the world outside.
func swarmFile(k keys) string {
	return fmt.Sprintf(`schema = 1
[swarm]
name = "isolation"
entrypoint = "agent"
[agents.agent]
source = "bundled:script"
enable_entrypoint = true
can_complete_tasks = true
comm_targets = ["helper"]
allow = { kv = "instance" }
limits = { cpu = "2s", memory = "64MiB" }
[agents.helper]
source = "bundled:script"
comm_targets = ["agent"]
allow = { kv = "instance" }
[server]
shutdown_grace = "1s"
[console]
look = "free"
[tenants.victim]
[tenants.hostile]
turns = 2
tasks = %d
queue = %d
[[auth.keys]]
id = "alice"
role = "user"
tenant = "victim"
key = %q
[[auth.keys]]
id = "alice"
role = "user"
tenant = "hostile"
key = %q
[[auth.keys]]
id = "boss"
role = "admin"
tenant = "hostile"
key = %q
`, hostileTasks, hostileQueue, k.victim, k.hostile, k.boss)
}

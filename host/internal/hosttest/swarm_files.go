package hosttest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// ScriptKey is the key of the user of [ScriptSwarm].
const ScriptKey = "a-key-for-the-crash-test"

// ScriptSwarm has two agents that run scripts, and a user with [ScriptKey].
const ScriptSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
comm_targets = ["math"]
enable_entrypoint = true
can_complete_tasks = true
[agents.math]
source = "file:script.wasm"
comm_targets = ["boss"]
[[auth.keys]]
id = "crash"
role = "user"
key = "a-key-for-the-crash-test"
`

// GrantedSwarm is a file whose agents have different grants on one module.
const GrantedSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
breakpoint_tools = ["confirm"]
[agents.boss]
source = "file:script.wasm"
comm_targets = ["math"]
enable_entrypoint = true
can_complete_tasks = true
allow = { kv = "task", http = ["GET https://api.example.com/v1"], secrets = ["key"], retry_in_doubt = false }
limits = { memory = "64MiB", turn = "1m", cpu = "5s" }
[agents.math]
source = "file:script.wasm"
comm_targets = ["boss"]
actions = ["confirm"]
allow = { kv = "instance" }
limits = { memory = "32MiB", turn = "2m" }
[agents.calc]
source = "bundled:calculator"
comm_targets = ["boss"]
[actions.confirm]
source = "human"
description = "a person confirms"
parameters = { type = "object" }
[secrets.key]
value = "env::SKEP_TEST_KEY"
hosts = ["https://api.example.com"]
header = "X-Key"
[secrets.other]
value = "env::SKEP_TEST_KEY"
hosts = ["https://other.example.com"]
header = "X-Key"
` + CallerTables

// CallerTables are a second tenant, an operator, and an admin of each tenant.
const CallerTables = `[tenants.acme]
[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator"
[[auth.keys]]
id = "ada"
role = "admin"
key = "a-key-of-ada-the-admin"
[[auth.keys]]
id = "ann"
role = "admin"
tenant = "acme"
key = "a-key-of-ann-of-acme"
`

// The keys of [CallerTables]. FederatedSwarm has OperatorKey too.
const (
	OperatorKey = "a-key-of-the-operator"
	AdaKey      = "a-key-of-ada-the-admin"
	AnnKey      = "a-key-of-ann-of-acme"
)

// WriteSwarm writes a swarm of one script agent, with more settings.
func WriteSwarm(t *testing.T, more string) string {
	t.Helper()
	dir := t.TempDir()
	text := `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "bundled:script"
enable_entrypoint = true
can_complete_tasks = true
` + more
	if err := os.WriteFile(filepath.Join(dir, "swarm.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// FederatedSwarm is a file of a swarm whose agents write to other swarms' agents:
// NAME, and for each peer [peers] and a key that it shows.
const FederatedSwarm = `schema = 1
[swarm]
name = "NAME"
entrypoint = "boss"
enable_interswarm = true
[agents.boss]
source = "file:script.wasm"
comm_targets = ["math", TARGETS]
enable_entrypoint = true
can_complete_tasks = true
enable_interswarm = true
[agents.math]
source = "file:script.wasm"
comm_targets = ["boss", TARGETS]
enable_interswarm = true
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator"
`

// AliceKey is the key of a user of [FederatedSwarm].
const AliceKey = "a-key-of-alice-the-user"

// PeerKey is the key that one swarm shows another.
func PeerKey(from, to string) string { return "the-key-of-" + from + "-at-" + to }

// PeerTables are what a host's file says of a peer: where it is, and its key.
func PeerTables(name, peer, url, giveUp string) string {
	return fmt.Sprintf("[[auth.keys]]\nid = %q\nrole = \"agent\"\nkey = %q\n[peers.%s]\nbase_url = %q\nauth_token = %q\ngive_up = %q\n",
		peer, PeerKey(peer, name), peer, url, PeerKey(name, peer), giveUp)
}

// ModelKey and SiteKey are secrets that hosts of tests have: in a variable, and in the
// file site.key.
const (
	ModelKey = "sk-planted+model/key=0123456789"
	SiteKey  = "planted-site-key-0123456789"
)

// FailingModels are the tables of two models that do not try again: bad, of OpenAI's
// protocol at BAD, and odd, of Anthropic's at ODD. Their key is the variable MODEL_KEY.
const FailingModels = `[models.bad]
provider = "openai"
base_url = "BAD/v1"
model = "m"
api_key = "env::MODEL_KEY"
retries = 0
allow_private = true
[models.odd]
provider = "anthropic"
base_url = "ODD"
model = "m"
api_key = "env::MODEL_KEY"
retries = 0
allow_private = true
`

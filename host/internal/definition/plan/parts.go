package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"skep/host/internal/definition/config"
)

// machinesOwn are settings of peers and partners that name files of one machine.
var machinesOwn = []string{"ca_file", "client_cert", "client_key", "ca", "certificate", "key"}

// Parts returns digests of all that a reload can take over, by kind and name: hosts with the same parts do the
// same. Secrets and files of a machine are left out, which may differ by host.
func Parts(c *config.Config) map[string]string {
	parts := map[string]string{}
	for _, it := range items(c) {
		if it.restart {
			continue
		}
		shown := it.shown
		if form, ok := shown.(map[string]any); ok && slices.Contains([]string{"peer", "partner"}, it.kind) {
			form = maps.Clone(form)
			for _, key := range machinesOwn {
				delete(form, key)
			}
			shown = form
		}
		text, err := json.Marshal(shown)
		if err != nil {
			panic(err) // it has the form of JSON
		}
		sum := sha256.Sum256(text)
		parts[it.kind+" "+it.name] = hex.EncodeToString(sum[:8])
	}
	return parts
}

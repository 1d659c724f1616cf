package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDataServerLeavesDirectory: a command on a server that --data names neither changes nor copies files of the data
// directory beside swarm.toml, which is another host's.
func TestDataServerLeavesDirectory(t *testing.T) {
	t.Parallel()
	p := newServerPatient(t)
	p.must(os.RemoveAll(p.data))
	p.also("[store]\nkeyring = \"env::SKEP_KEYRING\"\n")
	p.must(os.MkdirAll(filepath.Join(p.data, "gateways"), 0o700))
	p.must(os.MkdirAll(filepath.Join(p.data, "modules"), 0o700))
	digest := strings.Repeat("ab", 32)
	for _, name := range []string{"audit.jsonl", "letters.key", "quarantine.json", "registry.json", "gateways/a2a.key", "modules/" + digest + ".wasm"} {
		p.write(".skep/"+name, "local")
	}
	before := p.tree()
	backup := filepath.Join(t.TempDir(), "copy.db")
	for _, command := range []string{
		"peer key", "backup " + backup + " --with-keyring", "tenant list", "tenant export default", "tenant rotate default",
		"agent quarantine", "keyring prune --yes", "peer key rotate", "tenant erase default --yes",
	} {
		p.run(append(strings.Fields(command), "--data", "env::SKEP_DSN")...)
		if after := p.tree(); after != before {
			t.Fatalf("after %s the directory has\n%s\nwant\n%s", command, after, before)
		}
	}
	for name, want := range map[string]bool{".keyring": true, ".letters.key": true, ".a2a.key": false, ".registry.json": false, ".modules/" + digest + ".wasm": false} {
		if isThere(backup+name) != want {
			t.Errorf("the backup has %s: %t", name, !want)
		}
	}
}

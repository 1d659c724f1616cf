package definition

import (
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/definition/config"
)

// A secret that no grant of its agent can send is a warning.
func TestUnsentSecret(t *testing.T) {
	t.Parallel()
	for grant, sent := range map[string]bool{
		`"https://api.example"`: true, `"GET https://api.example/v1"`: true, `"https://*"`: true, `"GET https://*.example"`: false,
		`"https://other.example"`: false, `"http://api.example"`: false, `"https://api.example:8443"`: false, ``: false,
	} {
		text := fmt.Sprintf(`schema = 1
[swarm]
name = "hive"
entrypoint = "a"
[agents.a]
source = "exec:programs.go"
trusted = true
enable_entrypoint = true
can_complete_tasks = true
allow = { http = [%s], secrets = ["key"] }
[secrets.key]
value = "env::KEY"
hosts = ["https://api.example"]
header = "X-Key"
`, grant)
		cfg, err := config.Parse("swarm.toml", []byte(text), ".", config.Options{Env: func(string) (string, bool) { return "k", true }})
		if err != nil {
			t.Fatal(err)
		}
		all := Warnings(cfg)
		if (len(all) == 0) != sent {
			t.Errorf("%s: %v", grant, all)
		}
		if !sent && !strings.Contains(all.Error(), `10:`) || !sent && !strings.Contains(all.Error(), `the secret "key" is never sent: no grant of [agents.a] reaches its hosts; add to allow.http: "https://api.example"`) {
			t.Errorf("%s: %v", grant, all)
		}
	}
}

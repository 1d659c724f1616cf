package definition

import (
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/definition/config"
)

const grantsFile = `schema = 1
[swarm]
name = "hive"
entrypoint = "a"
[agents.a]
source = "file:policy_test.go"
enable_entrypoint = true
can_complete_tasks = true
allow = { http = [%s], http_private = %v, kv = "task", secrets = ["key"] }
[secrets.key]
value = %q
hosts = ["https://api.example.com"]
header = %q
[secrets.other]
value = "x"
hosts = ["https://api.example.com"]
header = "X-Other"
`

func parseGrantsFile(t *testing.T, grants string, private bool, value, header string) *config.Config {
	t.Helper()
	text := fmt.Sprintf(grantsFile, grants, private, value, header)
	cfg, err := config.Parse("swarm.toml", []byte(text), ".", config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Faults of grants and secrets stand where the file has them, and never hold a
// secret's value.
func TestGrantFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		grants        string
		private       bool
		value, header string
		want          string
	}{
		{`"https://api.example.com", "GET,POST https://api.example.com/v1", "https://*"`, false, "v", "X-Key", ""},
		{`"http://127.0.0.1:80"`, true, "v", "X-Key", ""},
		{`"http://127.0.0.1:80"`, false, "v", "X-Key", `swarm.toml:9:18: the grant "http://127.0.0.1:80" is of a private address; it takes allow = { http_private = true } in [agents.a]`},
		{`"api.example.com"`, false, "v", "X-Key", `swarm.toml:9:18: the grant "api.example.com": it must be as in "https://api.example.com"`},
		{`"get https://api.example.com"`, false, "v", "X-Key", `swarm.toml:9:18: the grant "get https://api.example.com": "get" is not a method`},
		{``, false, "open\nsesame", "X-Key", `swarm.toml:10:10: secrets.key: value must be text without line breaks`},
		{``, false, "v", "Host", `swarm.toml:10:10: secrets.key: header: the header Host is set by the host`},
	} {
		got := grantFaults(parseGrantsFile(t, c.grants, c.private, c.value, c.header)).Error()
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || strings.Contains(got, "sesame") {
			t.Errorf("%s: %q, want %q", c.grants, got, c.want)
		}
	}
}

// An agent is granted what its own table says, and no more.
func TestAllow(t *testing.T) {
	t.Parallel()
	cfg := parseGrantsFile(t, `"http://127.0.0.1:80"`, true, "v", "X-Key")
	a := allowOf(cfg, agentGrantee(cfg.Agents[0]))
	if a.KV != "task" || !a.RetryInDoubt || !a.HTTP.AllowPrivate || a.HTTP.Table != "[agents.a]" || len(a.HTTP.Grants) != 1 || len(a.HTTP.Secrets) != 1 {
		t.Errorf("%+v", a)
	}
	if got := fmt.Sprint(a.HTTP.Secrets[0]); got != "[secret key]" {
		t.Error(got)
	}
	cfg.Agents[0].Allow.HTTPNoKey = []string{"POST http://127.0.0.1:80/odd"}
	if got := allowOf(cfg, agentGrantee(cfg.Agents[0])).HTTP.Grants; len(got) != 2 || !got[0].NoKey || got[0].String() != "POST http://127.0.0.1/odd" || got[1].NoKey {
		t.Errorf("grants %v", got)
	}
	cfg.Agents[0].Allow = config.Allow{}
	if a := allowOf(cfg, agentGrantee(cfg.Agents[0])); a.KV != "" || a.RetryInDoubt || a.HTTP.AllowPrivate || len(a.HTTP.Grants)+len(a.HTTP.Secrets) != 0 {
		t.Errorf("%+v", a)
	}
}

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/internal/datadir"
	"skep/host/internal/gateway/uamp/seal"
	"skep/host/internal/guests"
)

// tokenSwarm has one agent that is reached over UAMP, and one that is not.
const tokenSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "bundled:script"
comm_targets = ["vault"]
enable_entrypoint = true
can_complete_tasks = true
expose = ["uamp"]
[agents.vault]
source = "bundled:script"
comm_targets = ["boss"]
[gateways.uamp]
did = "did:web:hive.example"
`

const (
	tokenHost   = "did:web:hive.example"
	tokenHolder = "did:web:lab.example:agents:lab:x"
)

// newTokenHost writes a swarm with the key of its gateway.
func newTokenHost(t *testing.T) (run func(args ...string) (int, *shell), d datadir.Data) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "swarm.toml")
	if err := os.WriteFile(file, []byte(tokenSwarm), 0o600); err != nil {
		t.Fatal(err)
	}
	d = datadir.Data{Dir: filepath.Join(dir, "data")}
	return func(args ...string) (int, *shell) {
		s := newShell(nil, append([]string{"gateway", "token", "-c", file, "--data", d.Dir}, args...)...)
		s.Plugins = filepath.Join(guests.Root(), "bin", "plugins")
		return Main(t.Context(), s.Env), s
	}, d
}

// TestGatewayToken (U-042): a token is signed by the host's key for one holder, with what it may do
// and until when, and is in the audit log.
func TestGatewayToken(t *testing.T) {
	t.Parallel()
	run, d := newTokenHost(t)
	if code, s := run(tokenHolder); code != exitFailed || !strings.Contains(s.stderr.String(), "there is no key of uamp") {
		t.Errorf("without a key: code %d, %s", code, s.stderr.String())
	}
	keys, err := d.RotateGatewayKey("uamp")
	if err != nil {
		t.Fatal(err)
	}
	public, err := seal.ParseJWK(tokenHost+"#"+keys[0].ID, keys[0].JWK)
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]struct {
		scope string
		life  time.Duration
		use   seal.Use
	}{
		"":                                {"uamp:ask", time.Hour, seal.Use{Need: "uamp:ask", Agent: "boss"}},
		"--intent * --ttl 30d":            {"uamp:*", 30 * 24 * time.Hour, seal.Use{Need: "uamp:cancel", Agent: "vault"}},
		"--intent inform --agent boss":    {"uamp:inform agent:boss", time.Hour, seal.Use{Need: "uamp:inform", Agent: "boss"}},
		"--intent ask --intent subscribe": {"uamp:ask uamp:subscribe", time.Hour, seal.Use{Need: "uamp:subscribe", Agent: "boss"}},
	} {
		begin := time.Now().Truncate(time.Second)
		code, s := run(append([]string{tokenHolder, "-o", "json"}, strings.Fields(line)...)...)
		var shown struct {
			Token   string    `json:"token"`
			Expires time.Time `json:"expires"`
		}
		if err := json.Unmarshal(s.stdout.Bytes(), &shown); code != exitOK || err != nil {
			t.Fatalf("%s: code %d, %v\n%s", line, code, err, s.stderr.String())
		}
		token, err := seal.ReadToken(shown.Token)
		if err == nil {
			err = token.Verify([]seal.PublicKey{public})
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		use := want.use // as a host looks at it
		use.Now, use.Audience, use.Issuers, use.Subject = begin, []string{tokenHost}, []string{tokenHost}, tokenHolder
		if err := token.Check(use); err != nil || strings.Join(token.Scope, " ") != want.scope || !token.Expires.Equal(shown.Expires) || token.Expires.Before(begin.Add(want.life)) || token.Expires.After(time.Now().Add(want.life)) {
			t.Errorf("%s: %v, %+v", line, err, token.Claims)
		}
	}
	if log, err := os.ReadFile(filepath.Join(d.Dir, "audit.log")); err != nil || strings.Count(string(log), `"act":"token.grant"`) != 4 || !strings.Contains(string(log), tokenHolder) {
		t.Errorf("%v\n%s", err, log)
	}
}

// A token that no host would take is not made.
func TestGatewayTokenRefused(t *testing.T) {
	t.Parallel()
	run, _ := newTokenHost(t)
	for line, want := range map[string]struct {
		code int
		part string
	}{
		"":                                {exitUsage, "the DID of the agent that sends"},
		"lab":                             {exitUsage, "lab is no DID of an agent"},
		tokenHolder + " --ttl 31d":        {exitUsage, "30d at most"},
		tokenHolder + " --ttl 0":          {exitUsage, "--ttl takes a time"},
		tokenHolder + " --intent order":   {exitUsage, "--intent takes * or an intent"},
		tokenHolder + " --agent stranger": {exitNotFound, "there is no agent stranger"},
		tokenHolder + " --agent vault":    {exitNotFound, "vault is not reached over UAMP"},
	} {
		code, s := run(strings.Fields(line)...)
		if code != want.code || !strings.Contains(s.stderr.String(), want.part) || s.stdout.Len() > 0 {
			t.Errorf("%q: code %d, %s%s", line, code, s.stdout.String(), s.stderr.String())
		}
	}
}

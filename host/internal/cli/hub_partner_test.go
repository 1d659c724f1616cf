package cli

import (
	"crypto/ed25519"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/hub"
	"skep/host/internal/gateway/uamp/seal"
	"skep/host/internal/guests"
)

// hubAgent is an agent of a list with a key.
func hubAgent(t *testing.T, name, about, seed string) hub.Agent {
	t.Helper()
	id, err := did.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	k, err := seal.NewKey(name+"#k", ed25519.NewKeyFromSeed([]byte(strings.Repeat(seed, ed25519.SeedSize))))
	if err != nil {
		t.Fatal(err)
	}
	return hub.Agent{DID: id, Name: name, Manifest: envelope.Manifest{Description: about}, Keys: []seal.PublicKey{k.Public()}}
}

// TestHubPartners (U-102): agents of one host are one partner with each key once, hosts whose names
// are alike have different ones, and what others write ends no line of the table.
func TestHubPartners(t *testing.T) {
	t.Parallel()
	base, err := url.Parse("https://a.b.example")
	if err != nil {
		t.Fatal(err)
	}
	bad := hubAgent(t, "did:web:a.b.example:bad", "", "a")
	bad.Err = errors.New("it is\nforged")
	agents := []hub.Agent{
		hubAgent(t, "did:web:a.b.example:x", "one\nallow_private = true\x1b[2J", "a"), bad, hubAgent(t, "did:web:a-b.example:x", "two", "b"),
		hubAgent(t, `did:web:a.b.example:"y`, "three", "a"), hubAgent(t, "did:web:a.b.example:z", "four", "c"),
		hubAgent(t, "did:web:"+strings.Repeat("long.", 40)+"example:x", "five", "d"),
	}
	s := newShell(nil)
	a := newApp(s.Env)
	a.common.config, a.common.output = filepath.Join(t.TempDir(), "swarm.toml"), outputText
	if f := explain(a.printHub(base, hubFlags{allowPrivate: true}, agents)); f.code != exitFailed || !errors.Is(f, errReported) {
		t.Errorf("exit code %d, %v", f.code, f)
	}
	if got := s.stderr.String(); !strings.Contains(got, `did:web:a.b.example:bad does not count: it is\nforged`) {
		t.Errorf("stderr: %s", got)
	}
	tables := s.stdout.String()
	for want, n := range map[string]int{
		"[gateways.uamp.partners.a-b-example]\n": 1, "[gateways.uamp.partners.a-b-example-]\n": 1, `"did:web:a.b.example:\"y"`: 1, ":bad": 0, "\nallow_private = true\n": 1, `'{"kty"`: 4,
		"each of these signs for each of ids": 1,
	} {
		if got := strings.Count(tables, want); got != n {
			t.Errorf("%q %d times, want %d:\n%s", want, got, n, tables)
		}
	}
	const file = "schema = 1\n[swarm]\nname = \"hive\"\nentrypoint = \"boss\"\n[agents.boss]\nsource = \"bundled:script\"\nenable_entrypoint = true\ncan_complete_tasks = true\nexpose = [\"uamp\"]\n[gateways.uamp]\ndid = \"did:web:hive.example\"\n"
	c, err := config.Parse("swarm.toml", []byte(file+tables), t.TempDir(), config.Options{BundleDir: filepath.Join(guests.Root(), "bin", "plugins")})
	if err != nil {
		t.Fatalf("%v\n%s", err, tables)
	}
	if partners := c.Gateways[0].Partners; len(partners) != 3 || len(partners[0].IDs)+len(partners[1].IDs)+len(partners[2].IDs) != 5 {
		t.Errorf("%+v", partners)
	}
}

package config

import (
	"strings"
	"testing"
	"time"
)

// TestCluster: a host shares a server only with all that needs, and what is missing is named at its
// line.
func TestCluster(t *testing.T) {
	t.Parallel()
	const store = "[store]\ndriver = \"postgres\"\ndsn = \"env::HERE\"\nkeyring = \"env::KEK\"\n"
	const keys = "[[auth.keys]]\nid = \"a\"\nrole = \"user\"\nkey = \"a-key-of-the-test-0123\"\n"
	const url = "advertise = \"https://10.0.0.4:8000/\"\n"
	for name, c := range map[string]struct{ text, want string }{
		"whole":      {store + keys + "[cluster]\n" + url, ""},
		"loopback":   {store + keys + "[cluster]\nadvertise = \"http://127.0.0.1:8000\"\n", ""},
		"sqlite":     {keys + "[cluster]\n" + url, `cluster is for hosts that share a server; add driver = "postgres" to [store]`},
		"no address": {store + keys + "[cluster]\n", "cluster.advertise is missing; it is where the other hosts reach this one"},
		"plain":      {store + keys + "[cluster]\nadvertise = \"http://10.0.0.4:8000\"\n", "cluster.advertise sends the tokens of callers over plain http"},
		"hasty":      {store + keys + "[cluster]\n" + url + "beat = \"3s\"\n", "cluster.ttl must be at least three times cluster.beat"},
		"strangers":  {store + "[cluster]\n" + url, "cluster needs callers that all hosts know"},
		"requires":   {store + keys + "[cluster]\n" + url + "[server.tls]\nclient_ca = \"ca.pem\"\nclient_auth = \"require\"\n", `[server.tls] client_auth = "require" cannot be together with [cluster]: hosts show each other no certificate`},
		"mcp":        {store + keys + "[cluster]\n" + url + "[gateways.mcp]\n", ""},
		"a2a":        {store + keys + "[cluster]\n" + url + "[gateways.a2a]\npush = false\nsign_cards = false\n", ""},
		"pushes":     {store + keys + "[cluster]\n" + url + "[gateways.a2a]\nsign_cards = false\n", "[gateways.a2a] together with [cluster] needs push = false: only the host"},
		"signs":      {store + keys + "[cluster]\n" + url + "[gateways.a2a]\npush = false\nsign_cards = true\n", "needs sign_cards = false: each host has a key of its own"},
		"acp":        {store + keys + "[cluster]\n" + url + "[gateways.acp]\n", "[gateways.acp] cannot be together with [cluster]: mailboxes"},
		"amp":        {store + keys + "[cluster]\n" + url + "[gateways.amp]\n", "[gateways.amp] cannot be together with [cluster]: the answers"},
		"iacp":       {store + keys + "[cluster]\n" + url + "[gateways.iacp]\n", "[gateways.iacp] cannot be together with [cluster]: its connections"},
		"uamp":       {store + keys + "[cluster]\n" + url + "[gateways.uamp]\n", "[gateways.uamp] cannot be together with [cluster]: its keys"},
		"unknown":    {store + keys + "[cluster]\n" + url + "tll = \"6s\"\n", "did you mean"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse("swarm.toml", []byte(readValid(t, "minimal.toml")+c.text), "testdata/valid", Options{Env: storeEnv, BundleDir: "testdata/valid/plugins"})
			if c.want == "" {
				if err != nil || got.Cluster.Advertise == "" || strings.HasSuffix(got.Cluster.Advertise, "/") || got.Cluster.TTL != 6*time.Second {
					t.Fatalf("Parse() = %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Parse() = %v, want %s", err, c.want)
			}
		})
	}
}

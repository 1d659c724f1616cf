package config

import (
	"fmt"
	"strings"
	"testing"
)

// storeEnv has DSNs, each in the variable that names it, and a key.
func storeEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"KEK":    strings.Repeat("00", 32),
		"HERE":   "postgres://skep@/skep?host=/run/postgresql",
		"FAR":    "postgres://skep:pass@db.example/skep?sslmode=verify-full",
		"PLAIN":  "postgres://skep:pass@db.example/skep?sslmode=disable",
		"BROKEN": "postgres://skep:pa/ss@db.example/skep",
		"EMPTY":  "",
	}[name]
	return v, ok
}

// TestServerStore: what a server needs is there, and what does not go with it is refused at
// its line. No message has a part of a password.
func TestServerStore(t *testing.T) {
	t.Parallel()
	const keyring = "keyring = \"env::KEK\"\n"
	for name, c := range map[string]struct {
		text, want, warning, durability string
	}{
		"here":          {"driver = \"postgres\"\ndsn = \"env::HERE\"\n" + keyring, "", "", DurabilityLocal},
		"replicated":    {"driver = \"postgres\"\ndsn = \"env::HERE\"\ndurability = \"replicated\"\n" + keyring, "", "", DurabilityReplicated},
		"far":           {"driver = \"postgres\"\ndsn = \"env::FAR\"\n" + keyring, "", "", DurabilityReplicated},
		"far and local": {"driver = \"postgres\"\ndsn = \"env::FAR\"\ndurability = \"local\"\n" + keyring, "", "", DurabilityLocal},
		"plaintext":     {"driver = \"postgres\"\ndsn = \"env::PLAIN\"\nplaintext = true\n" + keyring, "", "", DurabilityReplicated},
		"in the file":   {"driver = \"postgres\"\ndsn = \"postgres://u@127.0.0.1/d?sslmode=disable\"\n" + keyring, "", "", DurabilityLocal},
		"password":      {"driver = \"postgres\"\ndsn = \"postgres://u:secret@127.0.0.1/d?sslmode=disable\"\n" + keyring, "", "store.dsn stands in this file", DurabilityLocal},
		"sqlite":        {"", "", "", ""},

		"no dsn":       {"driver = \"postgres\"\n" + keyring, "9:2: store.dsn is missing; the driver postgres needs it", "", ""},
		"no keyring":   {"driver = \"postgres\"\ndsn = \"env::HERE\"\n", "9:2: store.keyring is missing; the driver postgres needs it", "", ""},
		"unset":        {"driver = \"postgres\"\ndsn = \"env::ABSENT\"\n" + keyring, "11:7: the environment variable ABSENT is not set", "", ""},
		"empty":        {"driver = \"postgres\"\ndsn = \"env::EMPTY\"\n" + keyring, "11:7: store.dsn: it is no DSN of PostgreSQL", "", ""},
		"broken":       {"driver = \"postgres\"\ndsn = \"env::BROKEN\"\n" + keyring, "11:7: store.dsn: it is no DSN of PostgreSQL", "", ""},
		"not verified": {"driver = \"postgres\"\ndsn = \"env::PLAIN\"\n" + keyring, "11:7: the server is on another machine, and not all connections to it are over TLS", "", ""},
		"durability":   {"driver = \"postgres\"\ndsn = \"env::HERE\"\ndurability = \"eventual\"\n" + keyring, `12:14: store.durability must be "replicated" or "local", not "eventual"`, "", ""},
		"driver":       {"driver = \"postgre\"\n" + keyring, `10:10: store.driver must be "sqlite" or "postgres", not "postgre" (did you mean "postgres"?)`, "", ""},
		"dsn alone":    {"dsn = \"env::HERE\"\n", "10:1: dsn is for the driver postgres", "", ""},
		"durable file": {"durability = \"local\"\n", "10:1: durability is for the driver postgres", "", ""},
		"plain file":   {"plaintext = true\n", "10:1: plaintext is for the driver postgres", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := readValid(t, "minimal.toml")
			text = strings.TrimRight(text, "\n") + "\n" + strings.Repeat("\n", 8-strings.Count(strings.TrimRight(text, "\n"), "\n")-1) + "[store]\n" + c.text
			got, err := Parse("swarm.toml", []byte(text), "testdata/valid", Options{Env: storeEnv, BundleDir: "testdata/valid/plugins"})
			if c.want == "" {
				if err != nil || got.Store.Durability != c.durability || c.warning == "" != (len(got.Warnings) == 0) || !strings.Contains(fmt.Sprint(got.Warnings), c.warning) {
					t.Fatalf("Parse() = %v: %+v", err, got)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "swarm.toml:"+c.want) || strings.Contains(err.Error(), "pa/ss") || strings.Contains(err.Error(), "ss@") {
				t.Errorf("Parse() = %v, want %s", err, c.want)
			}
		})
	}
}

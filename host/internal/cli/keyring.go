package cli

import (
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
)

func (a *app) keyringCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "keyring", Short: "List, rewrap and prune the keys of tenants", GroupID: groupData,
		Long: `Keyring commands work on a data directory, not through a host. List also works
while a host uses it; rewrap and prune need it for themselves.`,
	}, a.keyringListCommand(), a.keyringRewrapCommand(), a.keyringPruneCommand())
}

const keyringListHelp = `List tells the keys of tenants apart, and never shows one. A current key seals what
is written, a retired one opens what it sealed before its tenant was rotated, and
of a destroyed one only its number is left. USED says that something in the
database is sealed with it.`

func (a *app) keyringListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the keys of tenants", Long: keyringListHelp, Args: atMost(0),
		Example: "  skep keyring list\n  skep keyring list -o json | jq '.keys[] | select(.state==\"retired\")'",
		RunE: a.withData(func(cmd *cobra.Command, d datadir.Data, _ []string) error {
			ring, err := d.Keyring(cmd.Context())
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(ringOf(ring))
			}
			return a.printKeyring(ring)
		}),
	}
}

// keyJSON is the JSON of a key.
type keyJSON struct {
	Key       string    `json:"key"`
	Tenant    string    `json:"tenant"`
	State     string    `json:"state"`
	Used      bool      `json:"used"`
	Created   time.Time `json:"created"`
	Retired   time.Time `json:"retired,omitzero"`
	Destroyed time.Time `json:"destroyed,omitzero"`
}

type ringJSON struct {
	Wrapped bool      `json:"wrapped"`
	Keys    []keyJSON `json:"keys"`
}

func ringOf(ring datadir.Keyring) ringJSON {
	out := ringJSON{ring.Wrapped, []keyJSON{}}
	for _, k := range ring.Keys {
		out.Keys = append(out.Keys, keyJSON{k.ID, k.Tenant, k.State, k.Named, k.Created, k.Retired, k.Destroyed})
	}
	return out
}

func (a *app) printKeyring(ring datadir.Keyring) error {
	if len(ring.Keys) == 0 {
		a.notef("no tenant has a key")
		return nil
	}
	wide := len("TENANT")
	for _, k := range ring.Keys {
		wide = max(wide, len(inLine(k.Tenant)))
	}
	head := pad("TENANT", wide) + "  KEY       " + pad("STATE", 9) + "  USED  SINCE"
	if err := a.printf("%s\n", a.dataStyle().dim(head)); err != nil {
		return err
	}
	for _, k := range ring.Keys {
		since, used := k.Created, "no"
		if !k.Retired.IsZero() {
			since = k.Retired
		}
		if !k.Destroyed.IsZero() {
			since = k.Destroyed
		}
		if k.Named {
			used = "yes"
		}
		if err := a.printf("%s  %s  %s  %s  %s\n", pad(inLine(k.Tenant), wide), k.ID, pad(k.State, 9), pad(used, 4), localTime(since)); err != nil {
			return err
		}
	}
	if !ring.Wrapped {
		a.notef("the keys are not wrapped: whoever can read the keyring has them. [store] keyring in swarm.toml wraps them")
	}
	return nil
}

const keyringRewrapHelp = `Rewrap changes the key that wraps the keys of tenants. Put the new one into [store]
keyring of swarm.toml, and name the old one with --from, as env::NAME or file::PATH.
What tenants keep is not touched, so it takes a moment however much that is.

Without [store] keyring the keys are left readable in their file; that needs
--plain. Keys that were never wrapped need no --from, and no rewrap either: the
next start of the host wraps them.

Copies of the keyring from before still need the old key. No host may run on the
data directory.`

const keyringRewrapExample = `  OLD=$(pass skep-old) skep keyring rewrap --from env::OLD
  skep keyring rewrap --from file::/media/stick/old.key`

func (a *app) keyringRewrapCommand() *cobra.Command {
	var from string
	var plain bool
	cmd := &cobra.Command{
		Use: "rewrap", Short: "Change the key that wraps them", Long: keyringRewrapHelp, Example: keyringRewrapExample, Args: atMost(0),
	}
	cmd.Flags().StringVar(&from, "from", "", "where the old key is: `env::NAME or file::PATH`")
	cmd.Flags().BoolVar(&plain, "plain", false, "wrap them with nothing: [store] keyring is gone on purpose")
	cmd.RunE = a.withData(func(cmd *cobra.Command, d datadir.Data, _ []string) error {
		old, err := a.reference("--from", from)
		if err != nil {
			return err
		}
		if plain != (d.Store.Keyring == "") {
			return wrongPlain(plain)
		}
		n, changed, err := d.Rewrap(cmd.Context(), old)
		if err != nil {
			return a.hostInUseHint(err)
		}
		return a.rewrapped(n, changed, d.Store.Keyring != "")
	})
	return cmd
}

func wrongPlain(plain bool) error {
	if plain {
		return usagef("--plain, but [store] keyring in swarm.toml names a key").help("leave one of the two out")
	}
	return failf(exitConfig, "there is no key to wrap with").help(
		"put the new one into [store] keyring in swarm.toml; --plain leaves the keys readable")
}

func (a *app) rewrapped(n int, changed, wrapped bool) error {
	if a.json() {
		return a.printJSON(map[string]any{"keys": n, "changed": changed, "wrapped": wrapped})
	}
	how := "wrapped with the key in [store] keyring"
	if !wrapped {
		how = "not wrapped"
	}
	if !changed {
		a.notef("nothing to do: %s already %s", are(n), how)
		return nil
	}
	a.notef("%s now %s; copies of the keyring from before still need the old key", are(n), how)
	return nil
}

// are begins a sentence about so many keys.
func are(n int) string {
	if n == 1 {
		return "1 key is"
	}
	return plural(int64(n), "key") + " are"
}

const keyringPruneHelp = `Prune destroys retired keys: those that rotations have left behind and that nothing
in the database is sealed with. What they sealed in backups from before the rotation
cannot be read any more, by nobody. It cannot be undone.

--older spares keys that were retired less long ago, for instance for as long as
backups are kept. No host may run on the data directory.`

func (a *app) keyringPruneCommand() *cobra.Command {
	var yes bool
	var age string
	cmd := &cobra.Command{
		Use: "prune", Short: "Destroy retired keys that nothing needs", Long: keyringPruneHelp, Args: atMost(0),
		Example: "  skep keyring prune --yes\n  skep keyring prune --older 30d --yes",
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this nothing is destroyed")
	cmd.Flags().StringVar(&age, "older", "0s", "only keys that were retired at least so long ago, as in `30d`")
	cmd.RunE = a.withData(func(cmd *cobra.Command, d datadir.Data, _ []string) error {
		older, err := config.ParseDuration(age)
		if err != nil || older < 0 {
			return usagef(`--older takes a duration such as "36h" or "30d", not %q`, age)
		}
		if !yes {
			return usagef("keyring prune needs --yes: backups from before a rotation cannot be read without the old key").help(
				"`%s` shows the keys", a.sameSwarm("skep keyring list"))
		}
		n, err := d.Prune(cmd.Context(), time.Now().Add(-older))
		if err != nil {
			return a.hostInUseHint(err)
		}
		if a.json() {
			return a.printJSON(map[string]int{"destroyed": n})
		}
		a.notef("%s destroyed", are(n))
		return nil
	})
	return cmd
}

// maxReference is the largest file that holds a key.
const maxReference = 4 << 10

// reference reads a secret from the place that a flag names. A secret in the argument
// itself is refused, and not repeated: others on the machine can see it.
func (a *app) reference(flag, text string) (config.Secret, error) {
	if text == "" {
		return "", nil
	}
	if name, ok := strings.CutPrefix(text, "env::"); ok {
		value, ok := a.env.LookupEnv(name)
		if !ok || value == "" {
			return "", usagef("%s: the environment variable %s is not set", flag, inLine(name))
		}
		return config.Secret(value), nil
	}
	path, ok := strings.CutPrefix(text, "file::")
	if !ok {
		return "", usagef("%s is env::NAME or file::PATH; a key does not belong on a command line", flag)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	value, err := io.ReadAll(io.LimitReader(f, maxReference))
	return config.Secret(value), err
}

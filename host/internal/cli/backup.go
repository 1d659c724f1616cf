package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
)

const backupHelp = `Backup writes a copy of the database to FILE, which must not exist, and copies of
the modules that the host keeps to FILE.modules: turns that wait for somebody go on
with the module they began with. The swarms that were registered go to
FILE.registry.json, if there are any; issued tokens are in the database. It works
while a host runs, and copies what was there at one moment.

What tenants keep is sealed in it: without the keyring of the data directory it
cannot be read, by nobody. Keep a copy of the keyring, but not beside the backups;
--with-keyring writes one to FILE.keyring, the key that signs letters to other swarms
to FILE.letters.key, and the keys with which gateways sign to FILE.a2a.key and
FILE.uamp.key, to be moved to a place of their own.`

const backupExample = `  skep backup /backups/hive-2026-11-20.db
  skep backup hive.db --with-keyring`

func (a *app) backupCommand() *cobra.Command {
	var withKeyring bool
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Copy the data to a file", GroupID: groupData,
		Long: backupHelp, Example: backupExample, Args: exactArguments("the FILE to write"),
	}
	cmd.Flags().BoolVar(&withKeyring, "with-keyring", false, "copy the keyring to FILE.keyring as well, the key that signs letters to FILE.letters.key, and the keys of gateways to FILE.GATEWAY.key")
	cmd.RunE = a.commandOnData(func(cmd *cobra.Command, args []string) error {
		return a.backup(cmd.Context(), args[0], withKeyring)
	})
	return cmd
}

func (a *app) backup(ctx context.Context, file string, withKeyring bool) error {
	d, err := a.dataOptions()
	if err != nil {
		return err
	}
	modules, err := d.Backup(ctx, file, withKeyring)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	out := backupFiles{File: file, Bytes: info.Size()}
	if modules > 0 {
		out.Modules = file + datadir.ModulesSuffix
	}
	if isThere(file + datadir.RegistrySuffix) {
		out.Registry = file + datadir.RegistrySuffix
	}
	if withKeyring {
		out.Keyring = file + datadir.KeyringSuffix
	}
	for gateway, name := range map[string]*string{"a2a": &out.CardKeys, "uamp": &out.UAMPKeys} {
		if keys := file + datadir.GatewayKeySuffix(gateway); isThere(keys) {
			*name = keys
		}
	}
	if a.json() {
		return a.printJSON(out)
	}
	a.noteBackup(out, d, modules, withKeyring)
	return nil
}

// backupFiles are the files of a backup, empty for those that it does not have.
type backupFiles struct {
	File     string `json:"file"`
	Bytes    int64  `json:"bytes"`
	Modules  string `json:"modules,omitempty"`
	Registry string `json:"registry,omitempty"`
	Keyring  string `json:"keyring,omitempty"`
	CardKeys string `json:"card_keys,omitempty"`
	UAMPKeys string `json:"uamp_keys,omitempty"`
}

// noteBackup prints the files of a backup, and what is needed to read them.
func (a *app) noteBackup(out backupFiles, d datadir.Data, modules int, withKeyring bool) {
	a.notef("%s: %s bytes of %s", out.File, quantity(uint64(out.Bytes)), d.Place())
	if modules > 0 {
		a.notef("%s: %s", out.Modules, plural(int64(modules), "module"))
	}
	if out.Registry != "" {
		a.notef("%s: the swarms that were registered", out.Registry)
	}
	if out.CardKeys != "" {
		a.notef("%s: the keys that sign agent cards", out.CardKeys)
	}
	if out.UAMPKeys != "" {
		a.notef("%s: the keys that sign envelopes", out.UAMPKeys)
	}
	switch {
	case withKeyring:
		a.notef("%s: the keys; whoever has both files can read all", out.Keyring)
	case d.Store.Driver == config.DriverPostgres:
		a.notef("its keys are on the server, and without them nobody can read it: make a copy with --with-keyring as well")
	default:
		a.notef("without %s nobody can read it: keep a copy of that file elsewhere, or use --with-keyring", filepath.Join(d.Dir, "keyring"))
	}
}

func isThere(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

const restoreHelp = `Restore makes a data directory of a backup. The directory must not hold a database;
FILE is checked before it is used. Modules in FILE.modules are kept as well, those
that are what their names say, the swarms in FILE.registry.json, and the keys that
sign in FILE.letters.key, FILE.a2a.key and FILE.uamp.key.

Issued tokens are as they were when the backup was made: those that were revoked
since are valid again. "skep token list" shows them.

A backup of a store on PostgreSQL is restored the same way, and moved to a server with
"skep migrate".

The keyring that belongs to the backup is the one in the directory, or FILE.keyring.
Where its keys are wrapped, [store] keyring in swarm.toml has to be the key that
wraps them.`

const restoreExample = `  skep restore hive.db --data /var/lib/hive
  skep serve --data /var/lib/hive`

func (a *app) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use: "restore FILE", Short: "Make a data directory of a backup", GroupID: groupData,
		Long: restoreHelp, Example: restoreExample, Args: exactArguments("the FILE of a backup"),
		RunE: a.commandOnDir(func(cmd *cobra.Command, args []string) error { return a.restore(cmd.Context(), args[0]) }),
	}
}

func (a *app) restore(ctx context.Context, file string) error {
	d, err := a.dataOptions()
	if err != nil {
		return err
	}
	if err := d.Restore(ctx, file); err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(map[string]string{"file": file, "data": d.Dir})
	}
	a.notef("%s is ready: `%s`", d.Dir, a.sameSwarm("skep serve"))
	return nil
}

// dataOptions names the data directory, or the server that --data names, with the settings of
// swarm.toml that concern it. Other settings may be wrong; without a file there is no key.
func (a *app) dataOptions() (datadir.Data, error) {
	s, err := config.LoadStore(a.common.config, config.Options{Env: a.env.LookupEnv})
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || a.common.set["config"]) {
		return datadir.Data{}, a.unreadable(err)
	}
	if s, err = a.storeOf(s); err != nil {
		return datadir.Data{}, err
	}
	d := datadir.Data{Dir: a.dataDir(), Store: s, Logger: a.noteLogger(slog.LevelWarn)}
	if a.common.isServer() {
		d.Dir = "" // the directory beside swarm.toml is another host's
	}
	return d, nil
}

// storeOf returns the store of swarm.toml, on the server that --data names if it names one.
func (a *app) storeOf(s config.Store) (config.Store, error) {
	if !a.common.isServer() {
		return s, nil
	}
	at, err := a.place("--data", a.common.data, s)
	if s.Driver != config.DriverPostgres {
		s.Durability = config.DurabilityLocal
	}
	s.Driver, s.DSN = config.DriverPostgres, at.DSN
	return s, err
}

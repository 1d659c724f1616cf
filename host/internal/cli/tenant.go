package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"

	"github.com/spf13/cobra"

	"skep/host/client"
	"skep/host/internal/datadir"
	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/store/atomicfile"
)

func (a *app) tenantCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "tenant", Short: "List, export and erase what tenants keep", GroupID: groupData,
		Long: `Tenant commands work on a data directory. List and export also work while a host
uses it, erase then has the host do it, and usage asks the host; rotate needs the directory for itself.`,
	}, a.withCallFlags(a.tenantListCommand()), a.tenantExportCommand(), a.withCallFlags(a.tenantUsageCommand()), a.withCallFlags(a.tenantEraseCommand()), a.tenantRotateCommand())
}

const tenantExportHelp = `Export writes all that is kept of a tenant, readable, as JSON lines: its tasks,
messages, events, histories, states, records and values. The first line has the
kind "tenant"; only an export whose last line has the kind "end" is whole.

Without FILE it goes to stdout. FILE must not exist.`

func (a *app) tenantExportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "export NAME [FILE]", Short: "Write all that is kept of a tenant", Long: tenantExportHelp,
		Example: "  skep tenant export acme acme.jsonl\n  skep tenant export default | jq -r 'select(.kind==\"task\").task'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s needs the NAME of a tenant", path(cmd))
			}
			return atMost(2)(cmd, args)
		},
		RunE: a.withData(func(cmd *cobra.Command, d datadir.Data, args []string) error {
			if len(args) == 1 {
				return d.Export(cmd.Context(), args[0], a.env.Stdout)
			}
			return a.exportTo(cmd.Context(), d, args[0], args[1])
		}),
	}
}

// exportTo writes an export to a new file, which gets its name when it is whole.
func (a *app) exportTo(ctx context.Context, d datadir.Data, tenant, file string) error {
	if _, err := os.Lstat(file); err == nil {
		return failf(exitFailed, "%s is there already: choose a new name", file)
	}
	var n counter
	if err := atomicfile.Create(file, 0o600, func(w io.Writer) error {
		n.w = bufio.NewWriter(w)
		return errors.Join(d.Export(ctx, tenant, &n), n.w.Flush())
	}); err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(map[string]any{"tenant": tenant, "file": file, "bytes": n.n})
	}
	a.notef("%s: %s bytes of tenant %s", file, quantity(n.n), printable(tenant))
	return nil
}

// counter counts what is written.
type counter struct {
	w *bufio.Writer
	n uint64
}

var _ io.Writer = (*counter)(nil)

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += uint64(n)
	return n, err
}

const tenantEraseHelp = `Erase removes all that is kept of a tenant and destroys its keys. From then on
nothing of it can be read, in no backup either: whoever has no other copy of the
keyring. It cannot be undone.

A host that runs on the data directory beside swarm.toml, or the one that --url names,
is asked to do it, with an operator's key. It cancels what runs of the tenant and
refuses its posts meanwhile; a tenant that is still in swarm.toml then begins anew.
What agents wrote for it to the roots of builtin:fs in that file goes as well.
An erasure that is cut short goes on when the directory is next used.`

func (a *app) tenantEraseCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "erase NAME", Short: "Remove all that is kept of a tenant", Long: tenantEraseHelp,
		Example: "  skep tenant export acme acme.jsonl && skep tenant erase acme --yes", Args: exactArguments("the NAME of a tenant"),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this nothing is erased")
	cmd.RunE = a.withData(func(cmd *cobra.Command, d datadir.Data, args []string) error {
		if !yes {
			return usagef("tenant erase needs --yes: what it removes is gone for good").help(
				"`%s` keeps a copy", a.sameSwarm("skep tenant export "+args[0]+" FILE"))
		}
		if err := a.erase(cmd.Context(), d, args[0]); err != nil {
			return err
		}
		return a.printDone(args[0], "erased")
	})
	return cmd
}

// erase calls the named host, or the one that uses the directory beside swarm.toml.
// The host of another directory is unknown: it may listen elsewhere.
func (a *app) erase(ctx context.Context, d datadir.Data, tenant string) error {
	if a.common.url == "" {
		err := d.Erase(ctx, tenant)
		if err == nil || errors.Is(err, datadir.ErrNotFound) { // an erasure may have ended before the files
			had, failed := a.eraseFiles(tenant)
			if failed != nil || had {
				return failed
			}
		}
		if !errors.Is(err, datadir.ErrInUse) {
			return err
		}
		if a.common.set["data"] {
			return (&failure{code: exitFailed, err: err}).help("a host uses the data directory: stop it, or name it with --url to have it erase the tenant")
		}
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	return a.explainErasure(c.EraseTenant(ctx, tenant), tenant)
}

// explainErasure adds how to find out what became of an erasure whose answer did not come:
// the host may go on with it.
func (a *app) explainErasure(err error, tenant string) error {
	if err == nil {
		return nil
	}
	f := explain(err)
	var gone *client.Unreachable
	var dial *net.OpError
	lost := errors.As(err, &gone) && !(errors.As(err, &dial) && dial.Op == "dial") && !client.Untrusted(err) && !errors.Is(err, client.ErrSpeaksTLS)
	if lost || f.code == exitInterrupted {
		return f.help("the host may go on with it: `%s` again ends with exit code %d once nothing of the tenant is left",
			a.sameSwarm("skep tenant erase "+tenant+" --yes"), exitNotFound)
	}
	return f
}

// eraseFiles removes what agents wrote for a tenant in the roots of swarm.toml, and
// reports whether there was any. With --data it removes nothing: the directory may
// be a copy, and the files are the running host's.
func (a *app) eraseFiles(tenant string) (had bool, err error) {
	roots, err := config.LoadFiles(a.common.config, config.Options{Env: a.env.LookupEnv})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // there is no file, and so no root
	}
	if err != nil {
		return false, a.unreadable(err)
	}
	if a.common.set["data"] {
		if len(roots) > 0 {
			a.notef("what agents wrote to the roots in %s stays: with --data nobody knows whether it belongs to that directory", a.common.config)
		}
		return false, nil
	}
	return definition.EraseFiles(roots, tenant)
}

const tenantRotateHelp = `Rotate gives a tenant a new key and seals all that it keeps with it. The old key
stays in the keyring, because backups name it; "skep keyring prune" drops it.

No host may run on the data directory, but hosts that share a server do it together.
A rotation that is cut short goes on when the directory is next used.`

func (a *app) tenantRotateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rotate NAME", Short: "Give a tenant a new key", Long: tenantRotateHelp,
		Example: "  skep tenant rotate default", Args: exactArguments("the NAME of a tenant"),
		RunE: a.withData(func(cmd *cobra.Command, d datadir.Data, args []string) error {
			if err := d.Rotate(cmd.Context(), args[0]); err != nil {
				return a.hostInUseHint(err)
			}
			return a.printDone(args[0], "rotated")
		}),
	}
}

// withData makes a command that works on the data directory, or on the server that --data names.
func (a *app) withData(do func(cmd *cobra.Command, d datadir.Data, args []string) error) func(*cobra.Command, []string) error {
	return a.commandOnData(a.onData(do))
}

// withDir makes a command that works on files of the data directory.
func (a *app) withDir(do func(cmd *cobra.Command, d datadir.Data, args []string) error) func(*cobra.Command, []string) error {
	return a.commandOnDir(a.onData(do))
}

// onData runs a command with the data that flags and swarm.toml name.
func (a *app) onData(do func(cmd *cobra.Command, d datadir.Data, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		d, err := a.dataOptions()
		if err != nil {
			return err
		}
		return do(cmd, d, args)
	}
}

// hostInUseHint adds a hint when a host uses the data directory.
func (a *app) hostInUseHint(err error) error {
	if !errors.Is(err, datadir.ErrInUse) {
		return err
	}
	return (&failure{code: exitFailed, err: err}).help("a host uses the data directory: stop it, run this again, and start it anew")
}

// printDone prints what was done to a tenant.
func (a *app) printDone(tenant, what string) error {
	if a.json() {
		return a.printJSON(map[string]any{"tenant": tenant, what: true})
	}
	a.notef("tenant %s is %s", printable(tenant), what)
	return nil
}

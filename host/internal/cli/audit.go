package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
)

func (a *app) auditCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "audit", Short: "Read and verify the audit log", GroupID: groupData,
		Long: `The audit log, audit.log in the data directory, has a line for each act that
matters to the host's security: what was refused, tokens made and revoked, agents
released, data erased. Each line has a hash over itself and the line before it.

Both commands only read, also while a host runs, and work on a copy of the file
elsewhere as well.`,
	}, a.auditVerifyCommand(), a.auditListCommand())
}

const auditVerifyHelp = `Verify reads the audit log from its first entry to its last and prints how many
there are, and the head: the hash of the last. A line that was altered, removed,
inserted or moved is found, and is exit code 1.

Entries cut off the end leave no gap. To find those, keep the head elsewhere, as the
host's own log does, and give it with --head. Where older files were archived, give
the head of the last of them with --prev.

Hosts that share a PostgreSQL server record the heads of each other's logs. Give the
logs of all of them, as files or data directories: a log that was cut or replaced
lacks what the others have recorded, and is named. With --server the heads that lie
on the server of [store] count, too. A host whose log is not given is exit code 1
unless --without names it, as one that is gone for good.`

func (a *app) auditVerifyCommand() *cobra.Command {
	var head string
	var o verifyFlags
	cmd := &cobra.Command{
		Use: "verify [LOG...]", Short: "Find out whether the audit log is as it was written", Long: auditVerifyHelp, Args: cobra.ArbitraryArgs,
		Example: "  skep audit verify\n  skep audit verify --head 4b2f… copy/audit.log\n  skep audit verify --server one/.skep two/.skep three/audit.log",
	}
	cmd.Flags().StringArrayVar(&o.prevs, "prev", nil, "the `HASH` of the entry before the first that is there; with several logs it may be repeated")
	cmd.Flags().StringVar(&head, "head", "", "the `HASH` of an entry that must be there")
	cmd.Flags().BoolVar(&o.server, "server", false, "look for the heads on the server of [store], too")
	cmd.Flags().StringArrayVar(&o.without, "without", nil, "the `NAME` of a host whose log is not looked for")
	single := a.withLog(datadir.Data.AuditFile, func(file string) error {
		if len(o.prevs) > 1 || len(o.without) > 0 {
			return usagef("several --prev and --without need several logs, or --server")
		}
		prev := strings.Join(o.prevs, "")
		return a.verifyLog(cmd, auditLog, datadir.AuditFileIn(file), prev, head, datadir.VerifyAudit)
	})
	several := a.command(func(cmd *cobra.Command, logs []string) error { return a.verifyTogether(cmd, logs, o) })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < 2 && !o.server:
			return single(cmd, args)
		case head != "":
			return usagef("--head is for one log: several are verified by what each has recorded of the others")
		}
		return several(cmd, args)
	}
	return cmd
}

// verifyLog verifies a chained log and prints its state.
func (a *app) verifyLog(cmd *cobra.Command, name, file, prev, head string, verify func(file, prev, head string) (datadir.AuditReport, error)) error {
	var err error
	if prev, err = hashFlag(cmd, "prev", prev); err != nil {
		return err
	}
	if head, err = hashFlag(cmd, "head", head); err != nil {
		return err
	}
	r, err := verify(file, prev, head)
	if err != nil {
		return a.damageError(name, err)
	}
	if a.json() {
		return a.printJSON(map[string]any{"whole": true, "entries": r.Entries, "first": r.First, "last": r.Last, "repairs": r.Repairs, "head": r.Head})
	}
	if r.Repairs > 0 {
		a.notef("%d of them are audit.repair: the log did not end as it should; `skep audit list --last 0 %s` shows when", r.Repairs, file)
	}
	return a.printf("%d entries, %d to %d, are as they were written\nhead %s\n", r.Entries, r.First, r.Last, r.Head)
}

// hashFlag is the value of a flag that takes a hash.
func hashFlag(cmd *cobra.Command, flag, value string) (string, error) {
	value = strings.ToLower(value)
	if cmd.Flags().Changed(flag) && !isHash.MatchString(value) {
		return "", usagef("--%s takes a hash of 64 hexadecimal digits, as verify prints it, not %q", flag, value)
	}
	return value, nil
}

// isHash is the form of an entry's hash.
var isHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// damageError names the first place where a log was changed.
func (a *app) damageError(name string, err error) error {
	var damage *datadir.AuditDamage
	if !errors.As(err, &damage) {
		return err
	}
	if a.json() {
		out := map[string]any{"whole": false, "file": damage.File, "line": damage.Line, "reason": damage.Reason}
		return errors.Join(a.printJSON(out), reported(exitFailed))
	}
	return failf(exitFailed, "the %s is not whole: %s", name, inLine(damage.Error()))
}

func (a *app) auditListCommand() *cobra.Command {
	var last int
	cmd := &cobra.Command{
		Use: "list [FILE]", Short: "Show the newest entries of the audit log", Args: atMost(1),
		Long: `List shows the newest entries, oldest first. Where the log is not as it was written,
a line says so, the entries behind it follow, and the exit code is 1.`,
		Example: "  skep audit list\n  skep audit list --last 0 -o json | jq -r '.entries[] | select(.outcome==\"refused\").address'",
	}
	cmd.Flags().IntVar(&last, "last", 50, "how `MANY` entries; 0 means all")
	cmd.RunE = a.withLog(datadir.Data.AuditFile, func(file string) error {
		if last < 0 {
			return usagef("--last takes a number from 0, not %d", last)
		}
		var list auditTail
		err := datadir.AuditEntries(file,
			func(seq int64, e datadir.AuditEntry) { list.add(auditLine{seq, e, nil}, last) },
			func(d *datadir.AuditDamage) { list.add(auditLine{broken: d}, last) })
		var damage *datadir.AuditDamage
		if err != nil && !errors.As(err, &damage) {
			return err
		}
		if shown := a.printAudit(list.newest(last), damage); shown != nil || damage == nil {
			return shown
		}
		if a.json() {
			return reported(exitFailed)
		}
		return a.damageError(auditLog, err)
	})
	return cmd
}

// withLog makes a command that reads a chained log: a file, or the log in the data
// directory.
func (a *app) withLog(in func(datadir.Data) string, do func(file string) error) func(*cobra.Command, []string) error {
	return a.commandOnDir(func(_ *cobra.Command, args []string) error {
		if len(args) == 1 {
			err := do(args[0])
			if info, statErr := os.Stat(args[0]); err != nil && (statErr != nil || !info.Mode().IsRegular() || filepath.Ext(args[0]) == ".toml") {
				return explain(err).help("without FILE the log of a swarm's data is read: -c names its file, --data the directory")
			}
			return err
		}
		d := datadir.Data{Dir: a.dataDir()}
		if _, err := os.Lstat(in(d)); errors.Is(err, fs.ErrNotExist) {
			if err := d.Exists(); err != nil {
				return err
			}
		}
		return do(in(d))
	})
}

package cli

import (
	"errors"
	"io/fs"
	"os"
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
the head of the last of them with --prev.`

func (a *app) auditVerifyCommand() *cobra.Command {
	var prev, head string
	cmd := &cobra.Command{
		Use: "verify [FILE]", Short: "Find out whether the audit log is as it was written", Long: auditVerifyHelp, Args: atMost(1),
		Example: "  skep audit verify\n  skep audit verify --head 4b2f… copy/audit.log",
	}
	cmd.Flags().StringVar(&prev, "prev", "", "the `HASH` of the entry before the first that is there")
	cmd.Flags().StringVar(&head, "head", "", "the `HASH` of an entry that must be there")
	cmd.RunE = a.withAuditLog(func(file string) error {
		prev, head = strings.ToLower(prev), strings.ToLower(head)
		for _, flag := range [][2]string{{"prev", prev}, {"head", head}} {
			if cmd.Flags().Changed(flag[0]) && !isHash.MatchString(flag[1]) {
				return usagef("--%s takes a hash of 64 hexadecimal digits, as verify prints it, not %q", flag[0], flag[1])
			}
		}
		r, err := datadir.VerifyAudit(file, prev, head)
		if err != nil {
			return a.damageError(err)
		}
		if a.json() {
			return a.printJSON(map[string]any{"whole": true, "entries": r.Entries, "first": r.First, "last": r.Last, "repairs": r.Repairs, "head": r.Head})
		}
		if r.Repairs > 0 {
			a.notef("%d of them are audit.repair: the log did not end as it should; `skep audit list --last 0` shows when", r.Repairs)
		}
		return a.printf("%d entries, %d to %d, are as they were written\nhead %s\n", r.Entries, r.First, r.Last, r.Head)
	})
	return cmd
}

// isHash is the form of an entry's hash.
var isHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// damageError names the first place where a log was changed.
func (a *app) damageError(err error) error {
	var damage *datadir.AuditDamage
	if !errors.As(err, &damage) {
		return err
	}
	if a.json() {
		out := map[string]any{"whole": false, "file": damage.File, "line": damage.Line, "reason": damage.Reason}
		return errors.Join(a.printJSON(out), reported(exitFailed))
	}
	return failf(exitFailed, "the audit log is not whole: %s", inLine(damage.Error()))
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
	cmd.RunE = a.withAuditLog(func(file string) error {
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
		return a.damageError(err)
	})
	return cmd
}

// withAuditLog makes a command that reads an audit log: a file, or the log in the
// data directory.
func (a *app) withAuditLog(do func(file string) error) func(*cobra.Command, []string) error {
	return a.command(func(_ *cobra.Command, args []string) error {
		if len(args) == 1 {
			return do(args[0])
		}
		d := datadir.Data{Dir: a.dataDir()}
		if _, err := os.Lstat(d.AuditFile()); errors.Is(err, fs.ErrNotExist) {
			if none := d.Exists(); none != nil {
				return none
			}
		}
		return do(d.AuditFile())
	})
}

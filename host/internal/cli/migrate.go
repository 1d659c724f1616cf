package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
	"skep/host/internal/store/postgres"
)

const migrateHelp = `Migrate moves what tenants keep from a data directory to a PostgreSQL server, or from
a server to a data directory. A PLACE is a directory or a DSN: env::NAME and file::PATH
name one that has a password, postgres://… stands for itself.

Tasks, messages, histories, records, values, blobs, issued tokens, loaded definitions,
agents in quarantine and the keyring are moved, all or nothing: every table is read
again, and its rows are counted and summed on both sides. Modules, registered swarms and
the key that signs letters are copied: turns that wait go on there with the modules that
they began with. What belongs to the host itself stays in its data directory: the audit
log, and the keys with which gateways sign.

No host may run. The PLACE that is moved to must have no store. The one that is moved
from keeps what it has, but no host opens it any more.

A move that was broken off, as by a power cut, may have made the whole copy: no host opens
the old place until the same command has completed the move. With --cancel it is given up
instead, if the PLACE that was moved to lacks the copy, and hosts open the old place again.

[store] keyring in swarm.toml has to be the key that wraps the keys of tenants: on a
server they are never plain.`

const migrateExample = `  skep migrate --from .skep --to env::SKEP_DSN
  skep migrate --from env::SKEP_DSN --to /var/lib/hive -o json | jq .rows`

func (a *app) migrateCommand() *cobra.Command {
	var from, to string
	var cancel bool
	cmd := &cobra.Command{
		Use: "migrate", Short: "Move the data to PostgreSQL, or back", GroupID: groupData,
		Long: migrateHelp, Example: migrateExample, Args: atMost(0),
	}
	cmd.Flags().StringVar(&from, "from", "", "the `PLACE` to move from")
	cmd.Flags().StringVar(&to, "to", "", "the `PLACE` to move to")
	cmd.Flags().BoolVar(&cancel, "cancel", false, "give up a move that was broken off")
	cmd.RunE = a.withDir(func(cmd *cobra.Command, d datadir.Data, _ []string) error {
		source, err := a.place("--from", from, d.Store)
		if err != nil {
			return err
		}
		target, err := a.place("--to", to, d.Store)
		if err != nil {
			return err
		}
		if (source.DSN == "") == (target.DSN == "") {
			return usagef("one of --from and --to is a data directory, the other a DSN").help(
				"skep backup and skep restore copy a directory, the programs of a server its databases")
		}
		if cancel {
			return a.cancelMigration(cmd.Context(), source, target)
		}
		tables, err := datadir.Migrate(cmd.Context(), source, target, d.Store.Keyring, a.noteTable)
		if err != nil {
			return a.hostInUseHint(err)
		}
		return a.printMigrated(source, target, tables)
	})
	return cmd
}

// cancelMigration gives up a move that was broken off.
func (a *app) cancelMigration(ctx context.Context, from, to datadir.Place) error {
	if err := datadir.CancelMigration(ctx, from, to); err != nil {
		return a.hostInUseHint(err)
	}
	if a.json() {
		return a.printJSON(struct {
			From      string `json:"from"`
			To        string `json:"to"`
			Cancelled bool   `json:"cancelled"`
		}{from.String(), to.String(), true})
	}
	a.notef("the move from %s to %s is given up; hosts open %s again", from, to, from)
	return nil
}

// noteTable tells of a table that was copied.
func (a *app) noteTable(t datadir.CopiedTable) {
	if t.Rows > 0 {
		a.notef("%s: %s", t.Table, plural(t.Rows, "row"))
	}
}

// isDSN reports whether a PLACE is a DSN, or a reference to one.
func isDSN(place string) bool {
	return slices.ContainsFunc([]string{"env::", "file::", "postgres://", "postgresql://"}, func(begin string) bool { return strings.HasPrefix(place, begin) })
}

// place reads a PLACE. A password in the argument itself is refused, and not repeated: others
// on the machine can see it. So is a server on another machine without TLS, unless s allows it.
func (a *app) place(flag, text string, s config.Store) (p datadir.Place, err error) {
	switch {
	case text == "":
		return p, usagef("%s is missing", flag).help("it takes a data directory or a DSN, as in %s .skep or %s env::SKEP_DSN", flag, flag)
	case !isDSN(text):
		return datadir.Place{Dir: text}, nil
	case strings.HasPrefix(text, "postgres"):
		p.DSN = config.Secret(text)
	default:
		p.DSN, err = a.reference(flag, text)
	}
	if err != nil {
		return p, err
	}
	reach, err := postgres.ReachOf(p.DSN.Reveal())
	switch {
	case errors.Is(err, postgres.ErrDSN):
		return p, usagef("%s: %v", flag, err)
	case reach.HasPassword && p.DSN.Reveal() == text:
		return p, usagef("%s has a password, which others on this machine can see on a command line", flag).help("write env::NAME or file::PATH")
	}
	if err := s.CheckReach(reach); err != nil {
		return p, usagef("%s: %w", flag, err)
	}
	return p, nil
}

func (a *app) printMigrated(from, to datadir.Place, tables []datadir.CopiedTable) error {
	type tableJSON struct {
		Table string `json:"table"`
		Rows  int64  `json:"rows"`
		Sum   string `json:"sum"`
	}
	out := struct {
		From   string      `json:"from"`
		To     string      `json:"to"`
		Rows   int64       `json:"rows"`
		Tables []tableJSON `json:"tables"`
	}{From: from.String(), To: to.String()}
	for _, t := range tables {
		out.Rows += t.Rows
		out.Tables = append(out.Tables, tableJSON{t.Table, t.Rows, t.Sum()})
	}
	if a.json() {
		return a.printJSON(out)
	}
	if len(tables) == 0 {
		a.notef("all was in %s already, from a move that was broken off; no host opens %s any more", out.To, out.From)
		return nil
	}
	a.notef("%s moved from %s to %s, the same on both sides; no host opens the old place any more", plural(out.Rows, "row"), out.From, out.To)
	if to.DSN != "" {
		a.notef(`next: driver = "postgres" and dsn in [store] of swarm.toml, then skep serve`)
	}
	return nil
}

package cli

import (
	"cmp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
)

// Names of the chained logs.
const (
	auditLog   = "audit log"
	messageLog = "log of messages"
)

const gatewayLogHelp = `Log shows the newest messages that came through gateways or left through them, oldest
first: which partner or user, the protocol's id and type, the size, what became of the
message, and its task here. It has no text of a message, only the hash of it (-o json).

The log, messages.log in the data directory, is chained as the audit log is: each line
has a hash over itself and the line before it. --verify finds out whether it is as it was
written. The oldest files are removed, see message_log of [store]. Log only reads, also
while a host runs, and works on a copy of the file elsewhere as well.`

// messageFilter is which messages are shown; empty texts are all.
type messageFilter struct{ gateway, realm, user, task, id string }

func (f messageFilter) has(e datadir.AuditEntry) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	m := e.Message
	return m != nil && is(f.gateway, m.Gateway) && is(f.realm, m.Realm) && is(f.task, m.Task) && is(f.id, m.ID) &&
		(f.user == "" || m.Realm == "" && f.user == e.Principal)
}

func (a *app) gatewayLogCommand() *cobra.Command {
	var show messageFilter
	var last int
	var verify bool
	var prev, head string
	cmd := &cobra.Command{
		Use: "log [FILE]", Short: "Show which foreign messages came and left, and verify the log", Long: gatewayLogHelp, Args: atMost(1),
		Example: "  skep gateway log --realm shop\n  skep gateway log --id m-17 -o json | jq -r '.messages[].sha256'\n  skep gateway log --verify",
	}
	cmd.Flags().StringVar(&show.gateway, "gateway", "", "messages of this `NAME`")
	cmd.Flags().StringVar(&show.realm, "realm", "", "messages of this `PARTNER`")
	cmd.Flags().StringVar(&show.user, "user", "", "messages of this `USER`, who comes for himself, as user:ann")
	cmd.Flags().StringVar(&show.task, "task", "", "messages of this `TASK`")
	cmd.Flags().StringVar(&show.id, "id", "", "the message with this foreign `ID`, and its repeats")
	cmd.Flags().IntVar(&last, "last", 50, "how `MANY` messages; 0 means all")
	cmd.Flags().BoolVar(&verify, "verify", false, "find out whether the log is as it was written")
	cmd.Flags().StringVar(&prev, "prev", "", "with --verify, the `HASH` of the entry before the first that is there")
	cmd.Flags().StringVar(&head, "head", "", "with --verify, the `HASH` of an entry that must be there")
	for _, flag := range []string{"gateway", "realm", "user", "task", "id", "last"} {
		cmd.MarkFlagsMutuallyExclusive("verify", flag)
	}
	cmd.RunE = a.withLog(datadir.Data.MessageLogFile, func(file string) error {
		if verify {
			return a.verifyLog(cmd, messageLog, file, prev, head, datadir.VerifyMessageLog)
		}
		if last < 0 {
			return usagef("--last takes a number from 0, not %d", last)
		}
		return a.showMessages(file, show, last)
	})
	return cmd
}

func (a *app) showMessages(file string, show messageFilter, last int) error {
	var list auditTail
	damage := []damageJSON{}
	err := datadir.AuditEntries(file, func(seq int64, e datadir.AuditEntry) {
		if show.has(e) {
			list.add(auditLine{seq, e, nil}, last)
		}
	}, func(d *datadir.AuditDamage) { damage = append(damage, damageJSON(*d)) })
	if err != nil && len(damage) == 0 {
		return err
	}
	if shown := a.printMessages(list.newest(last), damage); shown != nil || err == nil {
		return shown
	}
	if a.json() {
		return reported(exitFailed)
	}
	return a.damageError(messageLog, err)
}

// messageJSON is the JSON of a logged message.
type messageJSON struct {
	Seq       int64   `json:"seq"`
	Time      string  `json:"time"`
	Verdict   string  `json:"verdict"`
	Tenant    string  `json:"tenant"`
	Principal string  `json:"principal"`
	Gateway   string  `json:"gateway"`
	Realm     *string `json:"realm"`
	Direction string  `json:"direction"`
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Size      int     `json:"size"`
	SHA256    *string `json:"sha256"`
	Task      *string `json:"task"`
	Reason    string  `json:"reason"`
}

func (a *app) printMessages(list []auditLine, damage []damageJSON) error {
	if a.json() {
		messages := []messageJSON{}
		for _, l := range list {
			m := l.Message
			messages = append(messages, messageJSON{
				l.seq, l.Time.Format("2006-01-02T15:04:05.000000Z"), l.Outcome, l.Tenant, l.Principal, m.Gateway, orNull(m.Realm), m.Direction,
				m.ID, m.Type, m.Size, orNull(m.SHA256), orNull(m.Task), l.Reason,
			})
		}
		return a.printJSON(map[string]any{"messages": messages, "whole": len(damage) == 0, "damage": damage})
	}
	if len(list) == 0 {
		a.notef("there are no such messages")
		return nil
	}
	wide := []int{19, 3, 9, 7, 12, 14, 8}
	head := alignCells([]string{"TIME", "WAY", "VERDICT", "GATEWAY", "WHO", "TYPE", "BYTES", "ID · TASK"}, wide)
	if err := a.printf("%s\n", a.dataStyle().dim(head)); err != nil {
		return err
	}
	for _, l := range list {
		if err := a.printf("%s\n", alignCells(messageRow(l), wide)); err != nil {
			return err
		}
	}
	return nil
}

func messageRow(l auditLine) []string {
	m := l.Message
	about := cmp.Or(m.ID, "-")
	if m.Task != "" {
		about += " · " + m.Task
	}
	if l.Reason != "" {
		about += " · " + l.Reason
	}
	row := []string{
		l.Time.Local().Format(time.DateTime), m.Direction, l.Outcome, m.Gateway, cmp.Or(m.Realm, l.Principal, "-"), cmp.Or(m.Type, "-"), strconv.Itoa(m.Size), about,
	}
	for i, cell := range row {
		row[i] = inLine(cell)
	}
	return row
}

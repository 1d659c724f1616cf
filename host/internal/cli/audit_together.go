package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
)

// verifyFlags are the flags of verifying several logs.
type verifyFlags struct {
	prevs, without []string
	server         bool
}

// verifyTogether verifies the logs of several hosts and prints their state.
func (a *app) verifyTogether(cmd *cobra.Command, logs []string, o verifyFlags) error {
	d := datadir.Data{Dir: a.dataDir()} // of the file only --server needs something
	if o.server {
		var err error
		if d, err = a.dataOptions(); err != nil {
			return err
		}
	}
	for i, prev := range o.prevs {
		var err error
		if o.prevs[i], err = hashFlag(cmd, "prev", prev); err != nil {
			return err
		}
	}
	if o.server && d.Store.Driver != config.DriverPostgres {
		return failf(exitConfig, "--server: [store] has no PostgreSQL server").help("-c names the file of a host that has one")
	}
	if len(logs) == 0 {
		logs = []string{d.AuditFile()}
	}
	r, err := d.VerifyAudits(cmd.Context(), logs, o.prevs, o.server)
	if err != nil {
		return err
	}
	for _, name := range o.without {
		n := len(r.Absent)
		if r.Absent = slices.DeleteFunc(r.Absent, func(h datadir.RecordedHead) bool { return h.Host == name }); len(r.Absent) == n {
			a.notef("--without %s changes nothing: no host of this name is recorded whose log is not given", inLine(name))
		}
	}
	if a.json() {
		return errors.Join(a.printJSON(togetherOf(r)), unlessWhole(r, reported(exitFailed)))
	}
	for _, l := range r.Logs {
		if err := a.printLogReport(r, l); err != nil {
			return err
		}
	}
	for _, h := range r.Absent {
		if err := a.printf("! the log of %s is not given: %s\n", hostText(h.Address, h.Host), headText(r, h)); err != nil {
			return err
		}
	}
	return unlessWhole(r, failf(exitFailed, "%s", inLine(summarizeTogether(r))))
}

// unlessWhole returns err if something is not as it was written.
func unlessWhole(r datadir.AuditTogether, err error) error {
	if len(r.Absent) == 0 && !slices.ContainsFunc(r.Logs, func(l datadir.LogReport) bool { return !l.Whole() }) {
		return nil
	}
	return err
}

// printLogReport prints what was found of one log.
func (a *app) printLogReport(r datadir.AuditTogether, l datadir.LogReport) error {
	if l.Damage != nil {
		if err := a.printf("! the log of %s is not whole: %s\n", logText(l), inLine(l.Damage.Error())); err != nil {
			return err
		}
	}
	if n := len(l.Missing); n > 0 {
		more := ""
		if n > 1 {
			more = fmt.Sprintf("; %d more are missing, up to entry %d", n-1, l.Missing[n-1].Seq)
		}
		if err := a.printf("! the log of %s is cut: %s is missing in %s%s\n", logText(l), headText(r, l.Missing[0]), inLine(l.File), more); err != nil {
			return err
		}
	}
	if !l.Whole() {
		return nil
	}
	if l.Repairs > 0 {
		a.notef("%d of them are audit.repair: the log did not end as it should; `skep audit list --last 0 %s` shows when", l.Repairs, l.File)
	}
	return a.printf("%d entries, %d to %d, of %s are as they were written: %s\nhead %s\n", l.Entries, l.First, l.Last, logText(l), inLine(l.File), l.Head)
}

// headText says which entry a head is, and who has recorded it when.
func headText(r datadir.AuditTogether, h datadir.RecordedHead) string {
	by := "the server"
	for _, l := range r.Logs {
		if l.File == h.File {
			by = fmt.Sprintf("%s with entry %d of %s", logText(l), h.Entry, inLine(l.File))
		}
	}
	return fmt.Sprintf("entry %d with the hash %s of %s, which is recorded by %s,", h.Seq, h.Hash, h.At.UTC().Format(time.DateTime+"Z"), by)
}

// logText names the host of a log, or the file of a host that has no name.
func logText(l datadir.LogReport) string {
	if l.Name() == "" {
		return inLine(l.File)
	}
	return hostText(l.Address, l.Name())
}

func hostText(address, name string) string {
	if address == "" {
		return "host " + inLine(name)
	}
	return fmt.Sprintf("host %s (%s)", inLine(address), inLine(name))
}

// summarizeTogether names the hosts whose logs are not as they were written.
func summarizeTogether(r datadir.AuditTogether) string {
	var bad, absent []string
	for _, l := range r.Logs {
		if !l.Whole() {
			bad = append(bad, logText(l))
		}
	}
	for _, h := range r.Absent {
		absent = append(absent, hostText(h.Address, h.Host))
	}
	var parts []string
	if len(bad) > 0 {
		parts = append(parts, "not as it was written is the audit log of "+strings.Join(bad, ", "))
	}
	if len(absent) > 0 {
		parts = append(parts, "not given is the audit log of "+strings.Join(absent, ", ")+": give it, or name a host that is gone for good with --without")
	}
	return strings.Join(parts, "; ")
}

// logReportJSON is the JSON of one log.
type logReportJSON struct {
	File    string     `json:"file"`
	Host    string     `json:"host"`
	Address string     `json:"address"`
	Whole   bool       `json:"whole"`
	Entries int64      `json:"entries"`
	First   int64      `json:"first"`
	Last    int64      `json:"last"`
	Repairs int64      `json:"repairs"`
	Head    string     `json:"head"`
	Line    int        `json:"line"`
	Reason  string     `json:"reason"`
	Missing []headJSON `json:"missing"`
}

// headJSON is the JSON of an entry that a log or the server has recorded.
type headJSON struct {
	Host    string    `json:"host"`
	Address string    `json:"address"`
	Entry   int64     `json:"entry"`
	Hash    string    `json:"hash"`
	At      time.Time `json:"at"`
	// File is empty for the server.
	File    string `json:"recorded_in"`
	InEntry int64  `json:"recorded_entry"`
}

func headsOf(list []datadir.RecordedHead) []headJSON {
	out := []headJSON{}
	for _, h := range list {
		out = append(out, headJSON{h.Host, h.Address, h.Seq, h.Hash, h.At.UTC(), h.File, h.Entry})
	}
	return out
}

func togetherOf(r datadir.AuditTogether) map[string]any {
	logs := []logReportJSON{}
	for _, l := range r.Logs {
		damage := cmp.Or(l.Damage, new(datadir.AuditDamage))
		logs = append(logs, logReportJSON{
			cmp.Or(damage.File, l.File), l.Name(), l.Address, l.Whole(), l.Entries, l.First, l.Last, l.Repairs, l.Head, damage.Line, damage.Reason, headsOf(l.Missing),
		})
	}
	return map[string]any{"whole": unlessWhole(r, reported(exitFailed)) == nil, "logs": logs, "heads": r.Heads, "absent": headsOf(r.Absent)}
}

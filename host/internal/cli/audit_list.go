package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"skep/host/internal/datadir"
)

// auditLine is an entry with its number, or a place where the log is not whole.
type auditLine struct {
	seq int64
	datadir.AuditEntry
	broken *datadir.AuditDamage
}

// auditTail is the end of a log. It never holds more than twice what is wanted.
type auditTail []auditLine

// add takes one more; 0 wants all.
func (t *auditTail) add(l auditLine, want int) {
	if *t = append(*t, l); want > 0 && len(*t) > 2*want {
		*t = append(auditTail(nil), t.newest(want)...)
	}
}

func (t auditTail) newest(want int) []auditLine {
	if want > 0 && len(t) > want {
		return t[len(t)-want:]
	}
	return t
}

// auditJSON is the JSON of an entry.
type auditJSON struct {
	Seq       int64  `json:"seq"`
	Time      string `json:"time"`
	Act       string `json:"act"`
	Outcome   string `json:"outcome"`
	Tenant    string `json:"tenant"`
	Principal string `json:"principal"`
	Address   string `json:"address"`
	RequestID string `json:"request_id"`
	Target    string `json:"target"`
	Reason    string `json:"reason"`
	Count     int64  `json:"count"`
	// Heads are the last entries of other hosts' logs.
	Heads []datadir.AuditHead `json:"heads,omitempty"`
}

// damageJSON is the JSON of a place where the log is not whole.
type damageJSON struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// printAudit prints the end of a log; first is the first damage of all of it.
func (a *app) printAudit(list []auditLine, first *datadir.AuditDamage) error {
	if a.json() {
		return a.printAuditJSON(list, first)
	}
	rows := make([][]string, 0, len(list))
	wide := []int{19, len("OUTCOME"), len("ACT"), len("WHO"), len("FROM")}
	for _, l := range list {
		row := auditRow(l)
		for i := range wide {
			if l.broken == nil {
				wide[i] = max(wide[i], utf8.RuneCountInString(row[i]))
			}
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil
	}
	st := a.dataStyle()
	head := alignCells([]string{"TIME", "OUTCOME", "ACT", "WHO", "FROM", "TARGET"}, wide)
	if err := a.printf("%s\n", st.dim(head)); err != nil {
		return err
	}
	for i, l := range list {
		text := alignCells(rows[i], wide)
		if l.broken != nil {
			text = st.red("! " + inLine(l.broken.Error()))
		}
		if err := a.printf("%s\n", text); err != nil {
			return err
		}
	}
	return nil
}

// alignCells joins the cells of a row; those without a width come last.
func alignCells(cells []string, wide []int) string {
	padded := make([]string, len(cells))
	for i, cell := range cells {
		if padded[i] = cell; i < len(wide) && i < len(cells)-1 {
			padded[i] = pad(cell, wide[i])
		}
	}
	return strings.TrimRight(strings.Join(padded, "  "), " ")
}

// auditRow is an entry in cells; it is empty for damage.
func auditRow(l auditLine) []string {
	if l.broken != nil {
		return nil
	}
	who := l.Principal
	if l.Tenant != "" {
		who = l.Tenant + "/" + who
	}
	target := l.Target
	if l.Count > 1 {
		target += fmt.Sprintf("  ×%d", l.Count)
	}
	for _, h := range l.Heads {
		target += fmt.Sprintf("  · %s has %d", h.Address, h.Seq)
	}
	if l.Reason != "" {
		target += "  · " + l.Reason
	}
	row := []string{l.Time.Local().Format(time.DateTime), l.Outcome, l.Act, cmp.Or(who, "-"), cmp.Or(l.Address, "-"), target}
	for i, cell := range row {
		row[i] = inLine(cell)
	}
	return row
}

func (a *app) printAuditJSON(list []auditLine, first *datadir.AuditDamage) error {
	const form = "2006-01-02T15:04:05.000000Z"
	entries, damage := []auditJSON{}, []damageJSON{}
	if first != nil {
		damage = append(damage, damageJSON(*first))
	}
	for _, l := range list {
		switch {
		case l.broken == nil:
			entries = append(entries, auditJSON{
				l.seq, l.Time.Format(form), l.Act, l.Outcome, l.Tenant, l.Principal, l.Address, l.RequestID, l.Target, l.Reason, max(1, l.Count), l.Heads,
			})
		case *l.broken != *first:
			damage = append(damage, damageJSON(*l.broken))
		}
	}
	return a.printJSON(map[string]any{"entries": entries, "whole": first == nil, "damage": damage})
}

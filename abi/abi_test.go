package abi

import (
	"strings"
	"testing"
)

// The table is in number order, without a number or name twice.
func TestOpTable(t *testing.T) {
	names := map[string]bool{}
	last := Op(-1)
	for _, row := range Ops() {
		if row.Op <= last || names[row.Name] || row.Class == 0 {
			t.Errorf("bad row %+v after op %d", row, last)
		}
		last, names[row.Name] = row.Op, true
		if got, ok := LookupName(row.Name); !ok || got != row {
			t.Errorf("LookupName(%q) = %+v, %v", row.Name, got, ok)
		}
		if got, ok := Lookup(row.Op); !ok || got != row {
			t.Errorf("Lookup(%d) = %+v, %v", row.Op, got, ok)
		}
	}
	if _, ok := Lookup(999); ok {
		t.Error("Lookup(999) found something")
	}
}

func TestErrorf(t *testing.T) {
	e := Errorf(CodeDenied, OpMail, "comm_targets", "agent %q may not", "a")
	if e.Error() != `DENIED: agent "a" may not` || e.Op != "mail" {
		t.Errorf("%+v, %q", e, e.Error())
	}
	if long := Errorf(CodeInvalid, 999, "", "%s", strings.Repeat("é", MaxErrorMessage)); len(long.Message) > MaxErrorMessage {
		t.Errorf("message of %d bytes", len(long.Message))
	} else if !strings.HasSuffix(long.Message, "é") || long.Op != "op 999" {
		t.Errorf("message is cut within a character, or op = %q", long.Op)
	}
	if got := Code(99).String(); got != "CODE_99" {
		t.Errorf("unknown code renders as %q", got)
	}
}

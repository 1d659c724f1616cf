package abi

import (
	"encoding/json"
	"errors"
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

func TestParseDescriptor(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"good":           {`{"abi":1,"name":"a","version":"1","agents":[{"name":"a"}],"future":true}`, ""},
		"no json":        {`x`, "invalid character"},
		"two values":     {`{"abi":1,"name":"a","version":"1"}{}`, "more than one"},
		"no name":        {`{"abi":1,"version":"1"}`, "mandatory"},
		"newer":          {`{"abi":2,"name":"a","version":"1"}`, "the descriptor speaks ABI version 2, this host version 1: upgrade skep, or rebuild the module with an SDK for ABI 1"},
		"older":          {`{"name":"a","version":"1"}`, "the descriptor speaks ABI version 0, this host version 1: rebuild the module with"},
		"bad action":     {`{"abi":1,"name":"a","version":"1","actions":[{"name":"A b"}]}`, "action name"},
		"silent request": {`{"abi":1,"name":"a","version":"1","requests":[{"allow":"http"}]}`, "why"},
		"too large":      {`{"name":"` + strings.Repeat("a", MaxDescriptor) + `"}`, "at most"},
	} {
		d, err := ParseDescriptor([]byte(c.raw))
		switch {
		case c.want == "" && (err != nil || d.Name != "a"):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := ParseDescriptor([]byte(`{"abi":2}`)); !errors.Is(err, ErrVersion) {
		t.Errorf("a newer descriptor: %v", err)
	}
}

func FuzzParseDescriptor(f *testing.F) {
	f.Add([]byte(`{"abi":1,"name":"a","version":"1","actions":[{"name":"a_b","description":"d","parameters":{}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := ParseDescriptor(raw)
		if err != nil {
			return
		}
		again, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseDescriptor(again); err != nil {
			t.Errorf("what was accepted is refused when written again: %v", err)
		}
	})
}

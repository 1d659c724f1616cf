package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/store/pgtest"
)

// TestAuditHeads: each host has one head in the table, which the others and programs read, also when it has left.
// The oldest are dropped.
func TestAuditHeads(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	if _, err := ReadAuditHeads(t.Context(), dsn); !errors.Is(err, ErrNoAuditHeads) {
		t.Errorf("of a server without hosts: %v", err)
	}
	a, b := joinHost(t, dsn), joinHost(t, dsn)
	hash := strings.Repeat("f", 64)
	keep := func(h *testHost, name string, seq int64) {
		t.Helper()
		if err := h.KeepAuditHead(t.Context(), AuditHead{Host: name, Seq: seq, Hash: hash}); err != nil {
			t.Fatal(err)
		}
	}
	keep(a, "a", 3)
	keep(b, "b", 5)
	keep(a, "a", 4)
	if err := a.Leave(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	keep(a, "a", 7)
	list, err := b.AuditHeads(t.Context())
	var got string
	for _, h := range list {
		got += fmt.Sprintln(h.Host, h.Address, h.Seq, h.Hash == hash, h.At.IsZero())
	}
	if want := fmt.Sprintf("a %s 7 true false\nb %s 5 true false\n", a.opts.Address, b.opts.Address); err != nil || got != want {
		t.Errorf("%s%v, want\n%s", got, err, want)
	}
	change(t, dsn, "INSERT INTO audit_heads SELECT 'old' || n, '', 1, '', now() - interval '1 day' FROM generate_series(1, 200) n")
	keep(b, "b", 6)
	if list, err = b.AuditHeads(t.Context()); err != nil || len(list) != maxAuditHeads || list[0].Host != "a" || list[1].Host != "b" {
		t.Errorf("%d heads, %v", len(list), err)
	}
	change(t, dsn, `INSERT INTO audit_heads SELECT 'new' || n, repeat('a', 1000000), 1, repeat('f', 1000000), 'infinity' FROM generate_series(1, 200) n`)
	list, err = b.AuditHeads(t.Context())
	if err != nil || len(list) != maxAuditHeads {
		t.Fatalf("%d heads, %v", len(list), err)
	}
	if h := list[0]; len(h.Address) != 1000 || len(h.Hash) != 100 || h.At.UTC().Year() <= 9999 {
		t.Errorf("texts of %d and %d characters of %s", len(h.Address), len(h.Hash), h.At)
	}
}

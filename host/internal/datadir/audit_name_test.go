package datadir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/api/audit"
	"skep/host/internal/datadir"
)

// TestAuditName: a directory's name stays, belongs to no copy of another host's log beside it, and one that was damaged
// is refused.
func TestAuditName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, err := datadir.AuditName(dir)
	if err != nil || !audit.IsName(name) {
		t.Fatalf("%q, %v", name, err)
	}
	file := filepath.Join(dir, "audit.name")
	if err := os.WriteFile(file, []byte(name+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := datadir.AuditName(dir); err != nil || again != name {
		t.Errorf("%q, %v, want %q", again, err, name)
	}
	var paths []string
	for _, base := range []string{audit.Name, "two.log"} {
		paths = append(paths, filepath.Join(dir, base))
		log, err := audit.Open(paths[len(paths)-1], audit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Record(audit.Entry{Act: "host.start"}); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := datadir.Data{Dir: dir}.VerifyAudits(t.Context(), paths, nil, false)
	if err != nil || r.Logs[0].Name() != name || r.Logs[1].Name() != "" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, damaged := range []string{"", "a\x00b", strings.Repeat("a", 65)} {
		if err := os.WriteFile(file, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := datadir.AuditName(dir); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%q is taken as %q, %v", damaged, got, err)
		}
	}
}

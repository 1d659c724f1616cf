package quarantine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func openQuarantine(t *testing.T, path string) *Quarantine {
	t.Helper()
	q, err := OpenQuarantine(path)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quarantine.json")
	q := openQuarantine(t, path)
	math, text := Agent{"acme", "hive", "math"}, Agent{"acme", "hive", "text"}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, a := range []Agent{math, text, math} {
		if err := q.Confine(a, "digest", "it kills hosts", now); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := q.Release(text); !ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := q.Release(text); ok || err != nil {
		t.Error(ok, err)
	}
	q = openQuarantine(t, path)
	if why, ok := q.Reason(math); why != "it kills hosts" || !ok {
		t.Error(why, ok)
	}
	for _, a := range []Agent{text, {"umbrella", "hive", "math"}, {"acme", "other", "math"}} {
		if _, ok := q.Reason(a); ok {
			t.Errorf("%v is confined", a)
		}
	}
	if diff := cmp.Diff([]Confined{{math, "digest", now, "it kills hosts"}}, q.Agents()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A list of before modules were written down is read, and kept as it is.
func TestQuarantineWithoutModules(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quarantine.json")
	const old = `{"version":1,"agents":[{"tenant":"acme","swarm":"hive","agent":"math","since":"2026-11-20T12:00:00Z","why":"it kills hosts"}]}`
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	q := openQuarantine(t, path)
	math, text := Agent{"acme", "hive", "math"}, Agent{"acme", "hive", "text"}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	if err := q.Confine(text, "digest", "it kills hosts too", now); err != nil {
		t.Fatal(err)
	}
	want := []Confined{{math, "", now, "it kills hosts"}, {text, "digest", now, "it kills hosts too"}}
	if diff := cmp.Diff(want, openQuarantine(t, path).Agents()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDamagedQuarantine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quarantine.json")
	for content, want := range map[string]string{"{": "unexpected end", `{"version":2}`: "its version is 2 and this skep knows 1"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenQuarantine(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "remove it to release all agents") {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// What cannot be kept is not in force either: it would be gone at the next start.
func TestQuarantineThatCannotBeKept(t *testing.T) {
	t.Parallel()
	q := openQuarantine(t, filepath.Join(t.TempDir(), "nowhere", "quarantine.json"))
	a := Agent{"acme", "hive", "math"}
	if err := q.Confine(a, "", "why", time.Now()); err == nil {
		t.Error("it was kept nowhere")
	}
	if _, ok := q.Reason(a); ok {
		t.Error("it is in force")
	}
}

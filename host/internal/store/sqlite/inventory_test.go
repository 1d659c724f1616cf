package sqlite

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/keyring"
	"skep/host/internal/swarm"
)

// recordedBy commits a task of a tenant with turns that ran on modules.
func recordedBy(t *testing.T, s *Store, tenant, task string, modules ...string) {
	t.Helper()
	step := testStep(task, 1)
	step.Task.Key.Tenant = tenant
	for i, m := range modules {
		n := int64(i + 1)
		step.Events, step.Task.Cursor = []swarm.Event{{Seq: n, Name: "e", Time: testTime}}, n
		step.Record = &swarm.Record{N: n, Header: &swarm.TurnHeader{Agent: "a", Module: m}}
		if i%2 == 0 {
			step.Record.End = &swarm.TurnEnd{Exit: "ok", At: testTime}
		}
		if err := s.Commit(t.Context(), step); err != nil {
			t.Fatal(err)
		}
	}
}

func wantModules(t *testing.T, s *Store, want ...string) {
	t.Helper()
	named, err := s.Modules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(named))); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
}

func TestInventory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opts := Options{Keyring: &keyring.Options{}}
	s, err := Open(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wantModules(t, s)
	many := make([]string, walkRows+1)
	for i := range many {
		many[i] = "m"
	}
	recordedBy(t, s, "acme", "t1", append(many, "n")...)
	recordedBy(t, s, "umbrella", "t1", "o", "")
	wantModules(t, s, "m", "n", "o")

	r, err := OpenReader(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	wantTenants(t, r, "acme 1 true", "umbrella 1 true")
	var out bytes.Buffer
	if err := r.Export(t.Context(), "umbrella", &out); err != nil || strings.Count(out.String(), `"kind":"turn"`) != 2 {
		t.Errorf("export: %v\n%s", err, &out)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := r.Backup(t.Context(), copied); err != nil {
		t.Error(err)
	}

	if err := s.Erase(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	wantModules(t, s, "o")
	wantTenants(t, r, "umbrella 1 true")
}

func wantTenants(t *testing.T, r *Reader, want ...string) {
	t.Helper()
	list, err := r.Tenants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range list {
		got = append(got, fmt.Sprint(h.Tenant, " ", h.Tasks, " ", h.Bytes > 0))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tenants (-want +got):\n%s", diff)
	}
}

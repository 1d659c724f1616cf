package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/api/auth"
	"skep/host/internal/store/keyring"
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

// A name, a token or a key is enough to be erased for, and gone afterwards.
func TestKeeps(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, s *Store){
		"a token": func(t *testing.T, s *Store) {
			mustDo(t, s.AddToken(t.Context(), auth.IssuedToken{ID: "1", Principal: auth.Principal{Tenant: "acme", Role: auth.User, ID: "u"}, Created: testTime}))
		},
		"names and keys": func(t *testing.T, s *Store) {
			plant(t, s, "acme", "t1", planted)
			exec(t, openRawFile(t, s.path), "DELETE FROM tasks; DELETE FROM submissions; DELETE FROM tenants")
		},
		"a submission": func(t *testing.T, s *Store) {
			plant(t, s, "acme", "t1", planted)
			exec(t, openRawFile(t, s.path), "DELETE FROM tasks; DELETE FROM tenants; DELETE FROM keys")
		},
		"a key in the keyring": func(t *testing.T, s *Store) {
			_, err := s.codec.ring.Sealer("acme")
			mustDo(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openSealed(t, dir, &keyring.Options{})
			wantKeeps(t, s, false)
			leave(t, s)
			wantKeeps(t, s, true)
			mustDo(t, s.Erase(t.Context(), "acme"))
			wantKeeps(t, s, false)
		})
	}
}

func wantKeeps(t *testing.T, s *Store, want bool) {
	t.Helper()
	if kept, err := s.HasData(t.Context(), "acme"); kept != want || err != nil {
		t.Errorf("HasData() = %v, %v, want %v", kept, err, want)
	}
}

// A page of tenants finds each by an index of every table: it costs as much however many names there are.
func TestTenantPagePlan(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	rows, err := s.readers.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+listTenants, []byte{}, 1)
	mustDo(t, err)
	defer rows.Close()
	searches := 0
	for rows.Next() {
		var id, parent, unused int
		var detail string
		mustDo(t, rows.Scan(&id, &parent, &unused, &detail))
		of, scans := strings.CutPrefix(detail, "SCAN ")
		if scans && of != "named" && of != "CONSTANT ROW" && !strings.HasPrefix(of, "in_") {
			t.Errorf("plan: %s", detail)
		}
		if strings.HasPrefix(detail, "SEARCH ") {
			searches++
		}
	}
	if err := rows.Err(); err != nil || searches != 2*len(namingTables)+1 {
		t.Errorf("%d searches, %v", searches, err)
	}
}

// The tokens of a tenant whose erasure was cut short open nothing any more, from
// the moment that the next host opens the store.
func TestErasingTenantHasNoTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSealed(t, dir, &keyring.Options{})
	for i, tenant := range []string{"acme", "globex"} {
		mustDo(t, s.AddToken(t.Context(), auth.IssuedToken{
			ID: tenant, SHA256: [32]byte{byte(i)}, Principal: auth.Principal{Tenant: tenant, Role: auth.User, ID: "u"}, Created: testTime,
		}))
	}
	mustDo(t, s.writer.submit(t.Context(), choreNote{chore{choreErase, "acme"}}))
	list, err := s.Tokens(t.Context())
	if err != nil || len(list) != 1 || list[0].Tenant != "globex" {
		t.Errorf("Tokens() = %v, %v", list, err)
	}
}

// Holders of a tenant's data in memory hear of its erasure while
// everything is still there, and when nothing can come to it any more.
func TestOnErase(t *testing.T) {
	t.Parallel()
	s := openSealed(t, t.TempDir(), &keyring.Options{})
	plant(t, s, "acme", "t1", planted)
	var told []string
	s.OnErase(func(tenant string) {
		kept, err := s.HasData(t.Context(), tenant)
		told = append(told, fmt.Sprint(tenant, kept, err))
		err = s.AddToken(t.Context(), auth.IssuedToken{ID: "1", Principal: auth.Principal{Tenant: tenant}})
		if !errors.Is(err, swarm.ErrErasing) {
			t.Errorf("AddToken() = %v", err)
		}
	})
	mustDo(t, s.Erase(t.Context(), "acme"))
	if diff := cmp.Diff([]string{"acmetrue <nil>"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

package registry_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/peer/registry"
	"skep/host/internal/swarm"
)

// A variable has the token of one swarm only.
func TestOneNameAVariable(t *testing.T) {
	t.Parallel()
	url, _ := depot(t)
	r := open(t, registry.Options{})
	register(t, r, registry.Request{Name: "depot-1", BaseURL: url, Token: "${SWARM_AUTH_TOKEN_DEPOT_1}"})
	for _, name := range []string{"Depot-1", "depot_1", "DEPOT.1"} {
		_, err := r.Register(t.Context(), registry.Request{Name: name, BaseURL: url, Token: "${SWARM_AUTH_TOKEN_DEPOT_1}"})
		if !errors.Is(err, swarm.ErrConflict) || !strings.Contains(err.Error(), "would have the token of 'depot-1'") {
			t.Errorf("%s: %v", name, err)
		}
	}
	register(t, r, registry.Request{Name: "depot.2", BaseURL: url, Token: "a-token"})
	checkTokens(t, r, map[string][2]string{"depot-1": {"", "${SWARM_AUTH_TOKEN_DEPOT_1}"}, "depot.2": {"a-token", "${SWARM_AUTH_TOKEN_DEPOT_2}"}})
}

// A token that stands in a variable goes where it was first said to go: neither
// one step nor several by an admin change that, and the operator does.
func TestTokenStaysWhereItWasMeantFor(t *testing.T) {
	t.Parallel()
	url, _ := depot(t)
	other, _ := depot(t)
	r := open(t, registry.Options{})
	const ref = "${SWARM_AUTH_TOKEN_DEPOT}"
	register(t, r, registry.Request{Name: "depot", BaseURL: url, Token: "a-token"})
	before := r.Entries()
	for what, q := range map[string]registry.Request{
		"elsewhere":               {Name: "depot", BaseURL: other, Token: ref},
		"elsewhere, another path": {Name: "depot", BaseURL: url + "/x", Token: ref},
		"elsewhere, without one":  {Name: "depot", BaseURL: other},
		"without it":              {Name: "depot", BaseURL: url},
		"in memory":               {Name: "depot", BaseURL: url, Token: "b-token", Volatile: true},
	} {
		_, err := r.Register(t.Context(), q)
		if !errors.Is(err, swarm.ErrConflict) || !strings.Contains(err.Error(), ref+" for "+url) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := r.Remove(t.Context(), "depot", false); !errors.Is(err, swarm.ErrConflict) {
		t.Errorf("removed: %v", err)
	}
	if diff := cmp.Diff(before, r.Entries()); diff != "" {
		t.Error(diff)
	}
	checkTokens(t, r, map[string][2]string{"depot": {"a-token", ref}})
	register(t, r, registry.Request{Name: "depot", BaseURL: url + "/", Token: "c-token", Metadata: json.RawMessage(`{}`)})
	checkTokens(t, r, map[string][2]string{"depot": {"c-token", ref}})
	register(t, r, registry.Request{Name: "depot", BaseURL: other, Token: ref, Operator: true})
	checkTokens(t, r, map[string][2]string{"depot": {"", ref}})
}

// What is removed is known no more, after the next start either.
func TestRemove(t *testing.T) {
	t.Parallel()
	url, _ := depot(t)
	path := filepath.Join(t.TempDir(), "registry.json")
	static := []registry.Static{{Name: "fixed", BaseURL: "https://fixed.example"}}
	r := open(t, registry.Options{Path: path, Static: static})
	for _, q := range []registry.Request{
		{Name: "a", BaseURL: url}, {Name: "b", BaseURL: url, Token: "b-token"}, {Name: "c", BaseURL: url, Token: "c-token", Volatile: true},
	} {
		register(t, r, q)
	}
	if e, err := r.Remove(t.Context(), "a", false); err != nil || e.BaseURL != url {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := r.Remove(t.Context(), "c", false); err != nil {
		t.Error(err)
	}
	if _, err := r.Remove(t.Context(), "a", true); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("what is gone: %v", err)
	}
	if _, err := r.Remove(t.Context(), "fixed", true); !errors.Is(err, swarm.ErrConflict) || !strings.Contains(err.Error(), "[peers.fixed]") {
		t.Errorf("the file's: %v", err)
	}
	checkTokens(t, r, map[string][2]string{"c": {"", ""}, "b": {"b-token", "${SWARM_AUTH_TOKEN_B}"}})
	if diff := cmp.Diff([]string{"fixed", "b"}, names(open(t, registry.Options{Path: path, Static: static}))); diff != "" {
		t.Error(diff)
	}
	if _, err := r.Remove(t.Context(), "b", true); err != nil {
		t.Error(err)
	}
	checkTokens(t, r, map[string][2]string{"b": {"", ""}})
	if diff := cmp.Diff([]string{"fixed"}, names(r)); diff != "" {
		t.Error(diff)
	}
}

// What cannot be removed from the file is still known.
func TestRemoveOnABrokenDisk(t *testing.T) {
	t.Parallel()
	url, _ := depot(t)
	path := filepath.Join(t.TempDir(), "down", "registry.json")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	r := open(t, registry.Options{Path: path})
	register(t, r, registry.Request{Name: "a", BaseURL: url})
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Remove(t.Context(), "a", false); !errors.Is(err, fs.ErrNotExist) || len(r.Entries()) != 1 {
		t.Errorf("%v, %v", err, r.Entries())
	}
}

// Entries under names that are not taken any more do not stop a host.
func TestOpenLeavesOut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registry.json")
	const file = `{"schema":1,"endpoints":{
		"é":{"swarm_name":"é","base_url":"https://x.example","registered":"2026-01-01T00:00:00Z"},
		"Depot":{"swarm_name":"Depot","base_url":"https://x.example","registered":"2026-01-03T00:00:00Z"},
		"depot":{"swarm_name":"depot","base_url":"https://x.example","registered":"2026-01-02T00:00:00Z"},
		"hive":{"swarm_name":"hive","base_url":"https://x.example","registered":"2026-01-04T00:00:00Z"}}}`
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"depot"}, names(open(t, registry.Options{Path: path}))); diff != "" {
		t.Error(diff)
	}
}

package security_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// An ended task that cannot be read is missing in the list of its user, who gets new tasks
// all the same.
func TestDamagedEndedTask(t *testing.T) {
	t.Parallel()
	dir, data := hosttest.WriteSwarm(t, twoTenants), t.TempDir()
	file := filepath.Join(dir, "swarm.toml")
	r := hosttest.Start(t, file, data)
	const al = "a-key-of-al-of-acme"
	for _, task := range []string{"x", "y"} {
		if status, text := r.Call(t, al, "POST", "/message", `{"task_id":"`+task+`","body":"hello"}`); status != http.StatusOK {
			t.Fatal(status, text)
		}
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	alter(t, data, "UPDATE tasks SET body = substr(body, 1, length(body) - 4) WHERE CAST(task AS TEXT) = 'y'")
	r = hosttest.Start(t, file, data)
	if status, text := r.Call(t, al, "POST", "/message", `{"body":"hello"}`); status != http.StatusOK {
		t.Errorf("a new task is answered with %d %s", status, text)
	}
	if status, text := r.Call(t, al, "GET", "/skep/v1/tasks", ""); status != http.StatusOK || !strings.Contains(text, `"x"`) || strings.Contains(text, `"y"`) {
		t.Errorf("the list is answered with %d %s", status, text)
	}
	if status, text := r.Call(t, al, "GET", "/skep/v1/tasks/y", ""); status != http.StatusInternalServerError {
		t.Errorf("the task is answered with %d %s", status, text)
	}
}

// A loaded definition that cannot be read keeps its tenant from being served, and no other:
// the file's own might allow the tenant's agents more. Operators are told; unloading or
// erasing it helps from the next start on.
func TestDamagedDefinition(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, hosttest.GrantedSwarm)
	const text = `{"swarm":{"name":"hive","entrypoint":"boss"},"agents":{"boss":{"source":"file:script.wasm","enable_entrypoint":true,"can_complete_tasks":true}}}`
	if _, err := s.As(hosttest.AdaKey).LoadSwarm(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	alter(t, s.Data, "UPDATE loaded SET body = substr(body, 1, length(body) - 4)")
	s.Start()
	want := func(key string, want int, part string) {
		t.Helper()
		if status, text := s.Call(t, key, "POST", "/message", `{"body":"hello"}`); status != want || !strings.Contains(text, part) {
			t.Errorf("a post of %s is answered with %d %s, want %d", key, status, text, want)
		}
	}
	want(hosttest.AdaKey, http.StatusServiceUnavailable, "no swarm loaded")
	want(hosttest.AnnKey, http.StatusOK, "")
	if _, text := hosttest.Fetch(t, http.DefaultClient, "http://"+s.AdminAddr()+"/readyz"); !strings.Contains(text, "the loaded definition of tenant") {
		t.Errorf("/readyz says %q", text)
	}
	if _, err := s.As(hosttest.AdaKey).LoadSwarm(t.Context(), text); err == nil || !strings.Contains(err.Error(), "unload it") {
		t.Errorf("a load is answered with %v", err)
	}
	if _, err := s.As(hosttest.AdaKey).UnloadDefinition(t.Context()); err == nil || !strings.Contains(err.Error(), "is unloaded; the tenant is served again") {
		t.Errorf("unloading is answered with %v", err)
	}
	s.Restart()
	want(hosttest.AdaKey, http.StatusOK, "")
}

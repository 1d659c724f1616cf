package security_test

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
	"skep/host/internal/hosttest"
)

const twoTenants = `[tenants.acme]
[tenants.globex]
[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator"
[[auth.keys]]
id = "al"
role = "user"
tenant = "acme"
key = "a-key-of-al-of-acme"
[[auth.keys]]
id = "gus"
role = "user"
tenant = "globex"
key = "a-key-of-gus-of-globex"
`

// alter changes the database of a host that does not run.
func alter(t *testing.T, data, query string) {
	t.Helper()
	hosttest.SkipOnServer(t, "it reads or changes the database of a file")
	db, err := sql.Open("sqlite", "file:"+filepath.Join(data, "skep.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r, err := db.ExecContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.RowsAffected(); n == 0 || err != nil {
		t.Fatalf("%s: %d rows, %v", query, n, err)
	}
}

// One task that cannot be read does not keep the host from serving all others. Who
// asks for it is sent to the log, operators are told, and its tenant can be erased.
func TestDamagedTask(t *testing.T) {
	t.Parallel()
	dir, data := hosttest.WriteSwarm(t, twoTenants), t.TempDir()
	file := filepath.Join(dir, "swarm.toml")
	r := hosttest.Start(t, file, data)
	if status, text := r.Call(t, "a-key-of-al-of-acme", "POST", "/message",
		`{"task_id":"x","body":"[[\"timer.set\",{\"after\":\"30m\",\"body\":\"x\"}]]"}`, "respond-async"); status != http.StatusAccepted {
		t.Fatal(status, text)
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	alter(t, data, "UPDATE tasks SET body = substr(body, 1, length(body) - 4) WHERE state = 'running'")

	r = hosttest.Start(t, file, data)
	hosttest.Eventually(t, "the task is set aside", func() bool {
		_, text := hosttest.Fetch(t, http.DefaultClient, "http://"+r.AdminAddr()+"/metrics")
		return strings.Contains(text, "skep_tasks_damaged 1\n")
	})
	if _, text := hosttest.Fetch(t, http.DefaultClient, "http://"+r.AdminAddr()+"/readyz"); !strings.Contains(text, "1 running tasks cannot be read") {
		t.Errorf("/readyz says %q", text)
	}
	if status, text := r.Call(t, "a-key-of-gus-of-globex", "POST", "/message", `{"body":"hello"}`); status != http.StatusOK {
		t.Errorf("another tenant is answered with %d %s", status, text)
	}
	if status, text := r.Call(t, "a-key-of-al-of-acme", "POST", "/message", `{"task_id":"x","body":"hello"}`); status != http.StatusInternalServerError || !strings.Contains(text, "see request ") {
		t.Errorf("a post to the task is answered with %d %s", status, text)
	}
	if status, text := r.Call(t, "a-key-of-the-operator", "POST", "/skep/v1/tenants/acme/erase", ""); status != http.StatusOK {
		t.Errorf("the erasure is answered with %d %s", status, text)
	}
	if err := r.Stop(); err != nil {
		t.Error("stop:", err)
	}
}

// The tokens of a tenant open nothing once it is erased, also where the erasure
// goes on after a crash; and a tenant that has nothing but a token is erased too.
func TestErasedTokens(t *testing.T) {
	t.Parallel()
	dir, data := hosttest.WriteSwarm(t, twoTenants), t.TempDir()
	file := filepath.Join(dir, "swarm.toml")
	r := hosttest.Start(t, file, data)
	issue := func() string {
		status, text := r.Call(t, "a-key-of-the-operator", "POST", "/skep/v1/tokens", `{"role":"user","id":"bob","tenant":"acme"}`)
		_, rest, _ := strings.Cut(text, `"skep_`)
		token, _, ok := strings.Cut(rest, `"`)
		if status >= 300 || !ok {
			t.Fatalf("%d %s", status, text)
		}
		return "skep_" + token
	}
	want := func(token string, want int) {
		t.Helper()
		if status, text := r.Call(t, token, "GET", "/whoami", ""); status != want {
			t.Errorf("whoami is answered with %d %s, want %d", status, text, want)
		}
	}
	token := issue()
	want(token, http.StatusOK)
	if status, text := r.Call(t, "a-key-of-the-operator", "POST", "/skep/v1/tenants/acme/erase", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	want(token, http.StatusUnauthorized)

	token = issue()
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	alter(t, data, "INSERT INTO chores VALUES ('erase', CAST('acme' AS BLOB))")
	r = hosttest.Start(t, file, data)
	want(token, http.StatusUnauthorized)
	if err := r.Stop(); err != nil {
		t.Error("stop:", err)
	}
}

// While a host uses the directory no other process has tried to erase anything, so
// none has failed.
func TestErasureElsewhereIsNotRecorded(t *testing.T) {
	t.Parallel()
	dir, data := hosttest.WriteSwarm(t, ""), t.TempDir()
	r := hosttest.Start(t, filepath.Join(dir, "swarm.toml"), data)
	d := datadir.Data{Dir: data, Store: hosttest.StoreOf(t, data, config.Store{})}
	if err := d.Erase(t.Context(), "acme"); !strings.Contains(err.Error(), "in use") {
		t.Errorf("Erase() = %v", err)
	}
	if err := r.Stop(); err != nil {
		t.Error("stop:", err)
	}
	if err := datadir.AuditEntries(d.AuditFile(), func(_ int64, e datadir.AuditEntry) {
		if e.Act == "tenant.erase" {
			t.Errorf("%+v is recorded", e)
		}
	}, nil); err != nil {
		t.Error(err)
	}
}

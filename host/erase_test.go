package host_test

import (
	"database/sql"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"skep/host"
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

// call makes a request of somebody and returns the status and what is answered.
// A post that prefers "respond-async" does not wait for its answer.
func (r *running) call(t *testing.T, key, method, path, body string, prefer ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.host.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	req.Header["Prefer"] = prefer
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rsp.StatusCode, string(text)
}

// alter changes the database of a host that does not run.
func alter(t *testing.T, data, query string) {
	t.Helper()
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
	dir, data := writeSwarm(t, twoTenants), t.TempDir()
	file := filepath.Join(dir, "swarm.toml")
	r := startHost(t, file, data)
	if status, text := r.call(t, "a-key-of-al-of-acme", "POST", "/message",
		`{"task_id":"x","body":"[[\"timer.set\",{\"after\":\"30m\",\"body\":\"x\"}]]"}`, "respond-async"); status != http.StatusAccepted {
		t.Fatal(status, text)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	alter(t, data, "UPDATE tasks SET body = substr(body, 1, length(body) - 4) WHERE state = 'running'")

	r = startHost(t, file, data)
	eventuallyTrue(t, "the task is set aside", func() bool {
		_, text := fetch(t, http.DefaultClient, "http://"+r.host.AdminAddr()+"/metrics")
		return strings.Contains(text, "skep_tasks_damaged 1\n")
	})
	if _, text := fetch(t, http.DefaultClient, "http://"+r.host.AdminAddr()+"/readyz"); !strings.Contains(text, "1 running tasks cannot be read") {
		t.Errorf("/readyz says %q", text)
	}
	if status, text := r.call(t, "a-key-of-gus-of-globex", "POST", "/message", `{"body":"hello"}`); status != http.StatusOK {
		t.Errorf("another tenant is answered with %d %s", status, text)
	}
	if status, text := r.call(t, "a-key-of-al-of-acme", "POST", "/message", `{"task_id":"x","body":"hello"}`); status != http.StatusInternalServerError || !strings.Contains(text, "see request ") {
		t.Errorf("a post to the task is answered with %d %s", status, text)
	}
	if status, text := r.call(t, "a-key-of-the-operator", "POST", "/skep/v1/tenants/acme/erase", ""); status != http.StatusOK {
		t.Errorf("the erasure is answered with %d %s", status, text)
	}
	if err := r.stop(); err != nil {
		t.Error("stop:", err)
	}
}

// The tokens of a tenant open nothing once it is erased, also where the erasure
// goes on after a crash; and a tenant that has nothing but a token is erased too.
func TestErasedTokens(t *testing.T) {
	dir, data := writeSwarm(t, twoTenants), t.TempDir()
	file := filepath.Join(dir, "swarm.toml")
	r := startHost(t, file, data)
	issue := func() string {
		status, text := r.call(t, "a-key-of-the-operator", "POST", "/skep/v1/tokens", `{"role":"user","id":"bob","tenant":"acme"}`)
		_, rest, _ := strings.Cut(text, `"skep_`)
		token, _, ok := strings.Cut(rest, `"`)
		if status >= 300 || !ok {
			t.Fatalf("%d %s", status, text)
		}
		return "skep_" + token
	}
	want := func(token string, want int) {
		t.Helper()
		if status, text := r.call(t, token, "GET", "/whoami", ""); status != want {
			t.Errorf("whoami is answered with %d %s, want %d", status, text, want)
		}
	}
	token := issue()
	want(token, http.StatusOK)
	if status, text := r.call(t, "a-key-of-the-operator", "POST", "/skep/v1/tenants/acme/erase", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	want(token, http.StatusUnauthorized)

	token = issue()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	alter(t, data, "INSERT INTO chores VALUES ('erase', CAST('acme' AS BLOB))")
	r = startHost(t, file, data)
	want(token, http.StatusUnauthorized)
	if err := r.stop(); err != nil {
		t.Error("stop:", err)
	}
}

// While a host uses the directory nobody else has tried to erase anything, and so
// nobody has failed.
func TestErasureElsewhereIsNotRecorded(t *testing.T) {
	dir, data := writeSwarm(t, ""), t.TempDir()
	r := startHost(t, filepath.Join(dir, "swarm.toml"), data)
	d := host.Data{Dir: data}
	if err := d.Erase(t.Context(), "acme"); !strings.Contains(err.Error(), "in use") {
		t.Errorf("Erase() = %v", err)
	}
	if err := r.stop(); err != nil {
		t.Error("stop:", err)
	}
	if err := host.AuditEntries(d.AuditFile(), func(_ int64, e host.AuditEntry) {
		if e.Act == "tenant.erase" {
			t.Errorf("%+v is recorded", e)
		}
	}, nil); err != nil {
		t.Error(err)
	}
}

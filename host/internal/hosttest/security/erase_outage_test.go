package security_test

import (
	"context"
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// breakErasures makes the store of a running host fail as soon as it erases a tenant, until
// mend is called.
func breakErasures(t *testing.T, data string) (mend func()) {
	t.Helper()
	hosttest.SkipOnServer(t, "it reads or changes the database of a file")
	db, err := sql.Open("sqlite", "file:"+filepath.Join(data, "skep.db")+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	run := func(query string) {
		t.Helper()
		if _, err := db.ExecContext(context.Background(), query); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE TRIGGER outage BEFORE INSERT ON chores BEGIN SELECT RAISE(ABORT, 'an outage of the test'); END")
	return func() {
		t.Helper()
		run("DROP TRIGGER outage")
	}
}

// While the store fails, who asks for an erasure waits for its end, who asks a second time
// learns that it goes on, and other tenants are served. A host that stops before the end
// answers that it does.
func TestEraseWhileTheStoreFails(t *testing.T) {
	t.Parallel()
	const operator, al, gus = "a-key-of-the-operator", "a-key-of-al-of-acme", "a-key-of-gus-of-globex"
	dir, data := hosttest.WriteSwarm(t, twoTenants), t.TempDir()
	file := filepath.Join(dir, "swarm.toml")
	r := hosttest.Start(t, file, data)
	type answer struct {
		status int
		text   string
	}
	call := func(key, path, body string) answer {
		status, text := r.Call(t, key, "POST", path, body)
		return answer{status, text}
	}
	want := func(what string, got answer, status int, words string) {
		t.Helper()
		if got.status != status || !strings.Contains(got.text, words) {
			t.Errorf("%s is answered with %d %s, want %d and %q", what, got.status, got.text, status, words)
		}
	}
	begin := func() chan answer {
		want("a post", call(al, "/message", `{"body":"hello"}`), http.StatusOK, "hello")
		erased := make(chan answer, 1)
		go func() { erased <- call(operator, "/skep/v1/tenants/acme/erase", "") }()
		hosttest.Eventually(t, "posts of the tenant are refused", func() bool {
			got := call(al, "/message", `{"body":"hello"}`)
			return got.status == http.StatusServiceUnavailable && strings.Contains(got.text, "is being erased; try again")
		})
		return erased
	}
	mend := breakErasures(t, data)
	erased := begin()
	want("a second erasure", call(operator, "/skep/v1/tenants/acme/erase", ""), http.StatusConflict, "is being erased already")
	want("a post of another tenant", call(gus, "/message", `{"body":"hello"}`), http.StatusOK, "hello")
	select {
	case got := <-erased:
		t.Errorf("the erasure is answered with %d %s though the store fails", got.status, got.text)
	default:
	}
	mend()
	want("the erasure", <-erased, http.StatusOK, `"erased":true`)

	mend = breakErasures(t, data)
	erased = begin()
	stopped := make(chan error, 1)
	go func() { stopped <- r.Stop() }()
	want("an erasure that the host's stop ends", <-erased, http.StatusServiceUnavailable, "come again after its next start")
	if err := <-stopped; err != nil {
		t.Error("stop:", err)
	}
	mend()
	r = hosttest.Start(t, file, data)
	r.StopAtEnd(t)
	want("the erasure after a restart", call(operator, "/skep/v1/tenants/acme/erase", ""), http.StatusOK, `"erased":true`)
	want("one more", call(operator, "/skep/v1/tenants/acme/erase", ""), http.StatusNotFound, "keeps nothing")
}

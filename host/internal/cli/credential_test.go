package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// refusing is a host that answers every call with a status and a text.
func refusing(t *testing.T, status int, kind, body string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestRefusedKey: want a refusal to name the key that was sent.
func TestRefusedKey(t *testing.T) {
	t.Parallel()
	const unknown, role = `{"detail":"invalid API key"}`, `{"detail":"invalid role: that is for operators"}`
	dir := t.TempDir()
	write(t, dir, "hive/.skep/operator.key", "k")
	write(t, dir, "keyed/.skep/operator.key", "k")
	write(t, dir, "keyed/swarm.toml", "[[auth.keys]]\nkey = \"env::NOT_HERE\"\n")
	write(t, dir, "token", "k")
	file := filepath.Join(dir, "token")
	for _, tc := range []struct {
		name, body, dir string
		vars            map[string]string
		args            []string
		want            string
	}{
		{"none", unknown, "empty", nil, nil, "no key was sent: give one in SKEP_TOKEN"},
		{"the operator's", unknown, "hive", nil, nil, "is that of " + filepath.Join(dir, "hive/.skep/operator.key")},
		{"the operator's, ended", unknown, "keyed", nil, nil, "swarm.toml has [[auth.keys]], so the host knows no operator.key: put the key of one of them into SKEP_TOKEN"},
		{"another's, beside keys", unknown, "keyed", map[string]string{"SKEP_TOKEN": "k"}, nil, "is that of SKEP_TOKEN;"},
		{"a role, beside keys", role, "keyed", nil, nil, "its role is what to change"},
		{"the variable's", unknown, "hive", map[string]string{"SKEP_TOKEN": "k"}, nil, "is that of SKEP_TOKEN;"},
		{"a file's", unknown, "hive", nil, []string{"--token-file", file}, "is that of " + file + " (--token-file);"},
		{"a file's, by variable", unknown, "hive", map[string]string{"SKEP_TOKEN_FILE": file}, nil, file + " (SKEP_TOKEN_FILE);"},
		{"a role", role, "hive", map[string]string{"SKEP_TOKEN": "k"}, nil, "the key of SKEP_TOKEN is known; its role is what to change"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			url := refusing(t, 401, "application/json", tc.body)
			s := newShell(tc.vars, append([]string{"task", "list", "--url", url, "-c", filepath.Join(dir, tc.dir, "swarm.toml")}, tc.args...)...)
			if code := Main(t.Context(), s.Env); code != exitRefused || !strings.Contains(s.stderr.String(), tc.want) {
				t.Errorf("code %d, stderr %q; want %q", code, s.stderr.String(), tc.want)
			}
		})
	}
}

// TestNoTokenFile: want the flag that names a file which is not there.
func TestNoTokenFile(t *testing.T) {
	t.Parallel()
	s := newShell(nil, "task", "list", "--url", defaultURL, "--token-file", "/nowhere/token")
	if code := Main(t.Context(), s.Env); code != exitNotFound || !strings.Contains(s.stderr.String(), "there is no file /nowhere/token, which --token-file names") {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
}

// TestAnotherServer: want a server that is no host's API to be told from a task
// that is not there.
func TestAnotherServer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind, body string
		code       int
	}{
		{"application/json", `{"detail":"Not Found"}`, exitUnreachable},
		{"text/plain", "404 page not found\n", exitUnreachable},
		{"text/html", "<html><title>404</title></html>", exitUnreachable},
		{"application/json", `{"detail":"task 'x' not found"}`, exitNotFound},
	} {
		s := newShell(nil, "task", "show", "x", "--url", refusing(t, 404, tc.kind, tc.body))
		code := Main(t.Context(), s.Env)
		if told := strings.Contains(s.stderr.String(), "it is not skep's API that answers there"); code != tc.code || told != (tc.code == exitUnreachable) {
			t.Errorf("%s: code %d, stderr %q", tc.body, code, s.stderr.String())
		}
	}
}

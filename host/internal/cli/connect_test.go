package cli

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/definition/config"
)

const smallSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "chief"
[agents.chief]
source = "file:chief.wasm"
enable_entrypoint = true
can_complete_tasks = true
`

// write makes a file in a directory.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// settled returns an app with the common flags of a command line.
func settled(t *testing.T, vars map[string]string, args ...string) (*app, *shell) {
	t.Helper()
	s := newShell(vars, args...)
	a := newApp(s.Env)
	fs := a.root().PersistentFlags()
	a.common.registerCalls(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := a.common.complete(fs, a.env); err != nil {
		t.Fatal(err)
	}
	return a, s
}

// TestTokenStaysHere: want the operator's key to be shown to no other machine.
func TestTokenStaysHere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, ".skep/operator.key", "operator\n")
	for address, want := range map[string]string{
		"http://127.0.0.1:8000": "operator", "http://localhost:8000": "operator", "http://[::1]:8000": "operator",
		"http://127.9.9.9": "operator", "https://hive.example": "", "http://10.0.0.1:8000": "",
		"http://localhost.example": "", "http://127.0.0.1.example": "", "http://0.0.0.0:8000": "", "::": "",
	} {
		a, _ := settled(t, nil, "-c", filepath.Join(dir, "swarm.toml"))
		if got, err := a.token(address); got != want || err != nil {
			t.Errorf("token for %s = %q, %v; want %q", address, got, err, want)
		}
	}
}

func TestTokenSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, ".skep/operator.key", "operator")
	write(t, dir, "flag", "flag\n")
	write(t, dir, "variable", " variable ")
	write(t, dir, "data/operator.key", "data")
	write(t, dir, "empty", "\n")
	in := func(name string) string { return filepath.Join(dir, name) }
	all := map[string]string{"SKEP_TOKEN": "direct", "SKEP_TOKEN_FILE": in("variable")}
	for _, tc := range []struct {
		name string
		vars map[string]string
		args []string
		want string
		code int
	}{
		{"flag first", all, []string{"--token-file", in("flag")}, "flag", 0},
		{"then the token", all, nil, "direct", 0},
		{"without a line's end", map[string]string{"SKEP_TOKEN": " direct\r\n"}, nil, "direct", 0},
		{"then its file", map[string]string{"SKEP_TOKEN_FILE": in("variable")}, nil, "variable", 0},
		{"then the host's own", nil, nil, "operator", 0},
		{"wherever its data is", nil, []string{"--data", in("data")}, "data", 0},
		{"also by variable", map[string]string{"SKEP_DATA": in("data")}, nil, "data", 0},
		{"none", nil, []string{"--data", in("nowhere")}, "", 0},
		{"no such file", nil, []string{"--token-file", in("nowhere")}, "", exitNotFound},
		{"nothing in it", nil, []string{"--token-file", in("empty")}, "", exitUsage},
		{"no file", nil, []string{"--token-file", dir}, "", exitUsage},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a, _ := settled(t, tc.vars, append([]string{"-c", in("swarm.toml")}, tc.args...)...)
			got, err := a.token(defaultURL)
			if got != tc.want || err == nil && tc.code != 0 || err != nil && explain(err).code != tc.code {
				t.Errorf("token = %q, %v; want %q, code %d", got, err, tc.want, tc.code)
			}
		})
	}
}

// A token that no header can carry is a usage error, not a connection that breaks
// again and again.
func TestTokenOfTwoLines(t *testing.T) {
	t.Parallel()
	a, _ := settled(t, map[string]string{"SKEP_TOKEN": "two\nlines"}, "--url", "http://127.0.0.1:1")
	if _, err := a.connect(); err == nil || explain(err).code != exitUsage {
		t.Errorf("connect = %v", err)
	}
}

func TestHostURL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "chief.wasm", "x")
	write(t, dir, "swarm.toml", smallSwarm+"[server]\nlisten = \"127.0.0.1:4711\"\n")
	write(t, dir, "faulty.toml", "schema = 2\n[server]\nlisten = \"127.0.0.1:4712\"\n[[auth.keys]]\nkey = \"env::NOWHERE\"\n")
	write(t, dir, "silent.toml", "schema = 2\n")
	write(t, dir, "broken.toml", "schema = \n[server]\nlisten = \"127.0.0.1:4712\"\n")
	write(t, dir, "unset.toml", "[server]\nlisten = \"env::NOWHERE\"\n")
	write(t, dir, "wrong.toml", "[server]\nlisten = 4711\n")
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, tc := range []struct {
		name string
		vars map[string]string
		args []string
		want string
		code int
	}{
		{"flag", map[string]string{"SKEP_URL": "http://b"}, []string{"--url", "http://a"}, "http://a", 0},
		{"variable", map[string]string{"SKEP_URL": "http://b"}, nil, "http://b", 0},
		{"the file's", nil, []string{"-c", in("swarm.toml")}, "http://127.0.0.1:4711", 0},
		{"the file's, by variable", map[string]string{"SKEP_CONFIG": in("swarm.toml")}, nil, "http://127.0.0.1:4711", 0},
		{"no file", nil, nil, defaultURL, 0},
		{"a file that is not there", nil, []string{"-c", in("nowhere.toml")}, "", exitNotFound},
		{"faults elsewhere", nil, []string{"-c", in("faulty.toml")}, "http://127.0.0.1:4712", 0},
		{"faults, and nothing of an address", nil, []string{"-c", in("silent.toml")}, defaultURL, 0},
		{"no TOML", nil, []string{"-c", in("broken.toml")}, "", exitConfig},
		{"a variable that is not set", nil, []string{"-c", in("unset.toml")}, "", exitConfig},
		{"a number", nil, []string{"-c", in("wrong.toml")}, "", exitConfig},
		{"a directory", nil, []string{"-c", dir}, "", exitConfig},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a, s := settled(t, tc.vars, tc.args...)
			got, err := a.hostURL()
			if got != tc.want || err == nil && tc.code != 0 || err != nil && explain(err).code != tc.code {
				t.Errorf("URL %q, %v; want %q, code %d", got, err, tc.want, tc.code)
			}
			if s.stderr.Len() > 0 {
				t.Errorf("stderr %q", s.stderr.String())
			}
			if tc.code == exitConfig && tc.name != "a directory" && (!strings.Contains(err.Error(), ".toml:") || !strings.Contains(explain(err).hint, "or give --url")) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestDoorURL(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"127.0.0.1:8000": "http://127.0.0.1:8000", ":9": "http://127.0.0.1:9", "0.0.0.0:9": "http://127.0.0.1:9",
		"[::]:9": "http://127.0.0.1:9", "[::1]:9": "http://[::1]:9", "hive.example:80": "http://hive.example:80", "x": defaultURL,
	} {
		if got := doorURL(config.Door{Listen: listen, PublicURL: "http://proxy.example"}); got != want {
			t.Errorf("doorURL(%q) = %q, want %q", listen, got, want)
		}
	}
	for door, want := range map[config.Door]string{
		{Listen: ":8443", TLS: true}:                                    "https://127.0.0.1:8443",
		{Listen: ":8443", TLS: true, PublicURL: "https://hive.example"}: "https://hive.example",
	} {
		if got := doorURL(door); got != want {
			t.Errorf("doorURL(%+v) = %q, want %q", door, got, want)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{
		400: exitUsage, 401: exitRefused, 403: exitRefused, 404: exitNotFound, 409: exitFailed, 413: exitFailed, 421: exitRefused,
		429: exitBudget, 402: exitBudget, 500: exitFailed, 502: exitUnreachable, 503: exitUnreachable, 504: exitUnreachable,
	} {
		if got := explain(fmt.Errorf("wrapped: %w", &client.Error{Status: status})); got.code != want {
			t.Errorf("status %d %s: code %d, want %d", status, http.StatusText(status), got.code, want)
		}
	}
	for _, tc := range []struct {
		err  error
		want int
	}{
		{errors.New("x"), exitFailed},
		{fmt.Errorf("x: %w", errInterrupted), exitInterrupted},
		{fmt.Errorf("x: %w", os.ErrNotExist), exitNotFound},
		{&client.Unreachable{URL: "u", Err: errors.New("x")}, exitUnreachable},
		{reported(exitConfig), exitConfig},
	} {
		if got := explain(tc.err); got.code != tc.want {
			t.Errorf("%v: code %d, want %d", tc.err, got.code, tc.want)
		}
	}
}

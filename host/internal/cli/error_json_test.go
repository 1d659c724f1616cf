package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// toldError reads the error of a command line with -o json.
func toldError(t *testing.T, s *shell) errorJSON {
	t.Helper()
	var out struct{ Error errorJSON }
	d := json.NewDecoder(strings.NewReader(s.stderr.String()))
	if err := d.Decode(&out); err != nil || d.More() || s.stdout.Len() > 0 {
		t.Fatalf("%v: stdout %q, stderr %q", err, s.stdout.String(), s.stderr.String())
	}
	return out.Error
}

// An error is JSON wherever the flag stands in the command line.
func TestErrorAsData(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args   string
		vars   map[string]string
		asData bool
	}{
		{"task show -o json", nil, true},
		{"task show --output=json", nil, true},
		{"task show -o=json", nil, true},
		{"task list --limitt 3 -o json", nil, true},
		{"task list --limitt 3 --output json", nil, true},
		{"task list --limitt 3 -ojson", nil, true},
		{"task list --limitt 3 --output=json", nil, true},
		{"task list -o json --limitt 3", nil, true},
		{"nonsense", map[string]string{"SKEP_OUTPUT": "json"}, true},
		{"task list --limit 0", map[string]string{"SKEP_OUTPUT": "json"}, true},
		{"task list --limitt 3 -o text", map[string]string{"SKEP_OUTPUT": "json"}, false},
		{"task list --limit 0 -o text", map[string]string{"SKEP_OUTPUT": "json"}, false},
		{"task list -o yaml", nil, false},
		{"task list --limitt -- -o json", nil, false},
		{"task show", nil, false},
	} {
		t.Run(tc.args, func(t *testing.T) {
			t.Parallel()
			s := newShell(tc.vars, strings.Fields(tc.args)...)
			if code := Main(t.Context(), s.Env); code != exitUsage {
				t.Errorf("code %d", code)
			}
			if !tc.asData {
				if got := s.stderr.String(); !strings.HasPrefix(got, "skep: ") {
					t.Errorf("stderr %q", got)
				}
				return
			}
			if got := toldError(t, s); got.Code != "usage" || got.Message == "" || got.RequestID != nil {
				t.Errorf("told %+v", got)
			}
		})
	}
}

func TestRefusalAsData(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "r-7")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		w.Write([]byte(`{"detail":"not \u001b[31myours"}`))
	}))
	t.Cleanup(srv.Close)
	s := newShell(map[string]string{"SKEP_TOKEN": "a-token"}, "task", "show", "t-1", "-o", "json", "--url", srv.URL)
	if code := Main(t.Context(), s.Env); code != exitRefused {
		t.Errorf("code %d", code)
	}
	got := toldError(t, s)
	if got.Code != "refused" || got.RequestID == nil || *got.RequestID != "r-7" || !strings.HasPrefix(got.Message, "not \x1b[31myours (403") {
		t.Errorf("told %+v", got)
	}
	if strings.Count(s.stderr.String(), "\n") != 1 {
		t.Errorf("more than a line: %q", s.stderr.String())
	}
}

func TestEveryExitCodeHasAWord(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, code := range []int{
		exitFailed, exitUsage, exitConfig, exitNotFound, exitRefused, exitBudget, exitUnreachable, exitNonconforming, exitTimeout, exitInterrupted,
	} {
		word := codeWords[code]
		if other, twice := seen[word]; word == "" || twice {
			t.Errorf("code %d has the word %q, as %d", code, word, other)
		}
		seen[word] = code
	}
}

// The script of -o json covers every command.
func TestEveryCommandHasData(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../../cmd/skep/testdata/script/json.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" { // what it prints is for shells
			return
		}
		for _, below := range cmd.Commands() {
			walk(below)
		}
		if !cmd.HasSubCommands() && !strings.Contains(string(script), " "+cmd.CommandPath()+" ") && !strings.Contains(string(script), " "+cmd.CommandPath()+"\n") {
			t.Errorf("json.txtar does not try `%s`", cmd.CommandPath())
		}
	}
	walk(newApp(newShell(nil).Env).root())
}

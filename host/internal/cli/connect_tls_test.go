package cli

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secureHost is a host with TLS that has no tasks. ca vouches for it.
func secureHost(t *testing.T) (url, ca string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"tasks":[],"next":""}`)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // refusals are what is tested
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return srv.URL, ca
}

func TestTLSFlags(t *testing.T) {
	t.Parallel()
	url, ca := secureHost(t)
	for _, tc := range []struct {
		name   string
		vars   map[string]string
		args   []string
		code   int
		stderr string
	}{
		{"by flag", nil, []string{"--ca-file", ca}, exitOK, ""},
		{"by variable", map[string]string{"SKEP_CA_FILE": ca}, nil, exitOK, ""},
		{"flag first", map[string]string{"SKEP_CA_FILE": "nowhere"}, []string{"--ca-file", ca}, exitOK, ""},
		{"not trusted", nil, nil, exitUnreachable, "--ca-file names who vouches"},
		{"no such file", nil, []string{"--ca-file", ca + "x"}, exitNotFound, "the CA file"},
		{"half a certificate", map[string]string{"SKEP_CLIENT_CERT": ca}, []string{"--ca-file", ca}, exitUsage, "SKEP_CLIENT_CERT is set, and --client-key (SKEP_CLIENT_KEY) is not"},
		{"half, by flag", nil, []string{"--client-key", ca}, exitUsage, "--client-key needs --client-cert (SKEP_CLIENT_CERT) beside it"},
		{"not its key", map[string]string{"SKEP_CLIENT_CERT": ca}, []string{"--client-key", ca}, exitUsage, "the client certificate " + ca},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			args := []string{"task", "list", "--url", url, "-c", filepath.Join(t.TempDir(), "none.toml")}
			s := newShell(tc.vars, append(args, tc.args...)...)
			code := Main(context.Background(), s.Env)
			if code != tc.code || !strings.Contains(s.stderr.String(), tc.stderr) {
				t.Errorf("code %d, stderr %q; want %d, %q", code, s.stderr.String(), tc.code, tc.stderr)
			}
		})
	}
}

// TestInTheClear: want a call in the clear to a host with TLS to name the URL.
func TestInTheClear(t *testing.T) {
	t.Parallel()
	url, _ := secureHost(t)
	s := newShell(nil, "task", "list", "--url", strings.Replace(url, "https:", "http:", 1))
	if code := Main(t.Context(), s.Env); code != exitUnreachable {
		t.Errorf("code %d, want %d", code, exitUnreachable)
	}
	if got := s.stderr.String(); !strings.Contains(got, "it speaks TLS: use an https URL, "+url) || strings.Contains(got, "skep serve") {
		t.Errorf("stderr %q", got)
	}
}

package directory

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/peer/registry"
)

// A host whose registered peer has lost its token logs at its start which variable
// to set.
func TestLostTokenIsLogged(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	path := filepath.Join(t.TempDir(), "registry.json")
	open := func() *registry.Registry {
		known, err := registry.Open(t.Context(), registry.Options{Path: path, Local: "hive", AllowPrivate: true})
		if err != nil {
			t.Fatal(err)
		}
		return known
	}
	if _, err := open().Register(t.Context(), registry.Request{Name: "yard", BaseURL: srv.URL, Token: "the-token-of-the-yard"}); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{"": "set the variable SWARM_AUTH_TOKEN_YARD", "the-token-of-the-yard": ""} {
		var log bytes.Buffer
		d := New(Options{
			Config: &config.Config{}, Env: func(string) (string, bool) { return value, value != "" },
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		d.registry, d.allowPrivate = open(), true
		d.warnUnreachable()
		if !strings.Contains(log.String(), want) || want == "" && log.Len() > 0 {
			t.Errorf("%q, want %q", &log, want)
		}
	}
}

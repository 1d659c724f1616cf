package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Who asks for an erasure learns that it goes on, that the host stops, or, when no answer
// came, how to find out.
func TestEraseAnswers(t *testing.T) {
	t.Parallel()
	const again = "again ends with exit code 4 once nothing"
	fail := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"detail":"` + text + `"}`))
		}
	}
	for name, test := range map[string]struct {
		host http.HandlerFunc
		code int
		want string
		// unknown means that the erasure may go on.
		unknown bool
	}{
		"done":            {fail(http.StatusOK, ""), exitOK, "tenant acme is erased", false},
		"goes on":         {fail(http.StatusConflict, "tenant 'acme' is being erased already"), exitFailed, "is being erased already", false},
		"nothing is kept": {fail(http.StatusNotFound, "tenant 'acme' keeps nothing"), exitNotFound, "keeps nothing", false},
		"host stops":      {fail(http.StatusServiceUnavailable, "the host is shutting down; come again after its next start"), exitUnreachable, "come again after its next start", false},
		"connection lost": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, exitUnreachable, "no answer from", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(test.host)
			t.Cleanup(srv.Close)
			wantErase(t, t.Context(), srv.URL, test.code, test.want, again, test.unknown)
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		ctx, interrupt := context.WithCancelCause(t.Context())
		srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			interrupt(errInterrupted)
			<-r.Context().Done()
		}))
		t.Cleanup(srv.Close)
		wantErase(t, ctx, srv.URL, exitInterrupted, "interrupted", again, true)
	})
}

func wantErase(t *testing.T, ctx context.Context, url string, code int, want, again string, unknown bool) {
	t.Helper()
	s := newShell(map[string]string{"SKEP_TOKEN": "a-token"}, "tenant", "erase", "acme", "--yes", "--url", url)
	got := Main(ctx, s.Env)
	text := strings.Join(strings.Fields(s.stdout.String()+s.stderr.String()), " ")
	if got != code || !strings.Contains(text, want) || strings.Contains(text, again) != unknown {
		t.Errorf("exit code %d, %q; want %d, %q", got, text, code, want)
	}
}

package rest_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/telemetry/loglevel"
)

// TestLogLevel: an operator sets the level of a component for a while, and sees what counts until
// when; what cannot be set is refused with what can.
func TestLogLevel(t *testing.T) {
	t.Parallel()
	levels := newLevels()
	h := newTestHost(t, func(h *testHost) { h.opt.LogLevels = levels })
	const path = "/skep/v1/log/level"
	a := h.do(request{method: "POST", path: path, token: operatorToken, body: `{"level":"debug","component":"router","seconds":600}`})
	if a.status != 200 || !strings.Contains(a.body, `{"level":"info","components":["api","router"],"set":[{"component":"router","level":"debug","until":"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if again := h.do(request{path: path, token: operatorToken}); again.body != a.body {
		t.Errorf("%s, want %s", again.body, a.body)
	}
	for body, want := range map[string]string{
		`{"level":"loud"}`: `level \"loud\" is none of debug, info, warn, error`, `{}`: "is none of debug",
		`{"level":"debug","component":"rooter"}`: `\"rooter\" is no component of this host: it has api, router`,
		`{"level":"debug","seconds":0}`:          "seconds must be a number from 1 to 86400",
		`{"level":"debug","seconds":86401}`:      "seconds must be a number from 1 to 86400",
		`{"level":"debug","seconds":"ten"}`:      "seconds must be a number from 1 to 86400",
	} {
		if a := h.do(request{method: "POST", path: path, token: operatorToken, body: body}); a.status != 400 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s, want %q", body, a.status, a.body, want)
		}
	}
	if set := levels.List(); len(set) != 1 {
		t.Errorf("%v is set", set)
	}
}

// TestLogLevelAudited: each level that is set is in the audit log, and one that cannot be
// recorded is not set.
func TestLogLevelAudited(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	h := watchedHost(t, &entries, func(h *testHost) { h.opt.LogLevels = newLevels() })
	for body, want := range map[string]audit.Entry{
		`{"level":"debug","component":"router"}`: {Target: "router=debug for 10m0s", Outcome: audit.Done},
		`{"level":"warn","seconds":60}`:          {Target: "all=warn for 1m0s", Outcome: audit.Done},
	} {
		before := len(entries)
		h.do(request{method: "POST", path: "/skep/v1/log/level", token: "default/operator/op", body: body})
		if len(entries) != before+1 {
			t.Errorf("%s: audited %+v", body, entries[before:])
			continue
		}
		if e := entries[before]; e.Act != "log.level" || e.Target != want.Target || e.Outcome != want.Outcome || e.Principal == "" {
			t.Errorf("%s: audited %+v", body, e)
		}
	}
	levels := newLevels()
	full := newTestHost(t, func(h *testHost) { h.opt.LogLevels, h.opt.Audit = levels, fullAudit{} })
	a := full.do(request{method: "POST", path: "/skep/v1/log/level", token: operatorToken, body: `{"level":"debug"}`})
	if a.status != http.StatusInternalServerError || len(levels.List()) != 0 {
		t.Errorf("%d %s: %v is set", a.status, a.body, levels.List())
	}
}

// newLevels are levels of two components.
func newLevels() *loglevel.Levels {
	levels := loglevel.New(slog.LevelInfo, time.Now)
	for _, component := range []string{"api", "router"} {
		levels.Logger(slog.New(slog.DiscardHandler), component)
	}
	return levels
}

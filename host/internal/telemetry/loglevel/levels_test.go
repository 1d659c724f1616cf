package loglevel_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"skep/host/internal/telemetry/loglevel"
)

// TestSetLevelEnds: a component logs by the level that is set for it, in each log that is derived of
// its own, others by the level of the file; at the end of the time it is as before, and a new level of
// the file meanwhile counts then.
func TestSetLevelEnds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var base slog.LevelVar
	now := time.Now()
	levels := loglevel.New(&base, func() time.Time { return now })
	root := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: &base}))
	router, store := levels.Logger(root, "router"), levels.Logger(root, "store")
	derived := router.With("peer", "depot").WithGroup("g")
	logged := func() string {
		out.Reset()
		router.Debug("r-debug")
		derived.Debug("d-debug")
		store.Debug("s-debug")
		router.Info("r-info")
		store.Info("s-info")
		var words []string
		for _, word := range []string{"r-debug", "d-debug", "s-debug", "r-info", "s-info"} {
			if strings.Contains(out.String(), word) {
				words = append(words, word)
			}
		}
		return strings.Join(words, " ")
	}
	check := func(when, want string) {
		t.Helper()
		if got := logged(); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	check("before", "r-info s-info")
	levels.Set("router", slog.LevelDebug, time.Minute)
	check("set", "r-debug d-debug r-info s-info")
	base.Set(slog.LevelError)
	check("the file has another", "r-debug d-debug r-info")
	now = now.Add(time.Minute - 1)
	check("just before the end", "r-debug d-debug r-info")
	now = now.Add(1)
	check("the end", "")
	if set := levels.List(); len(set) != 0 {
		t.Errorf("%v is set", set)
	}
	levels.Set("", slog.LevelInfo, loglevel.MaxTime)
	check("all", "r-info s-info")
	if set := levels.List(); len(set) != 2 || set[0].Component != "router" || set[1].Component != "store" {
		t.Errorf("%v is set", set)
	}
}

// TestSetLevelNames: a component that is not there is refused with those that are, and a word that is no level.
func TestSetLevelNames(t *testing.T) {
	t.Parallel()
	levels := loglevel.New(slog.LevelInfo, time.Now)
	for _, name := range []string{"store", "api", "store"} {
		levels.Logger(slog.New(slog.DiscardHandler), name)
	}
	if err := levels.Check("rooter"); err == nil || err.Error() != `"rooter" is no component of this host: it has api, store` {
		t.Error(err)
	}
	if err := errors.Join(levels.Check("store"), levels.Check("")); err != nil {
		t.Error(err)
	}
	if _, err := loglevel.Parse("loud"); err == nil {
		t.Error("loud is a level")
	}
	for _, name := range []string{"debug", "info", "warn", "error"} {
		if level, err := loglevel.Parse(name); err != nil || loglevel.Name(level) != name {
			t.Errorf("%s is %v, %v", name, level, err)
		}
	}
}

// TestSetLevelNamesComponent: a line that only the set level lets through names its component, and no other does.
func TestSetLevelNamesComponent(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	levels := loglevel.New(slog.LevelInfo, time.Now)
	log := levels.Logger(slog.New(slog.NewTextHandler(&out, nil)), "router")
	levels.Set("", slog.LevelDebug, time.Minute)
	log.Debug("fine")
	log.Info("coarse")
	if lines := strings.Split(out.String(), "\n"); !strings.HasSuffix(lines[0], " component=router") || strings.Contains(lines[1], "component") {
		t.Errorf("%s", out.String())
	}
}

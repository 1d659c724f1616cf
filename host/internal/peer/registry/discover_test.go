package registry_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/peer/registry"
	"skep/host/internal/swarm"
)

const directory = "http://10.0.0.1"

func discovered(t *testing.T, r *registry.Registry) (names string) {
	t.Helper()
	list, err := r.Discover(t.Context(), directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names += " " + e.Name
	}
	return strings.TrimSpace(names)
}

// A list adds unknown swarms, by either name of the key, and changes no known
// one.
func TestDiscover(t *testing.T) {
	t.Parallel()
	w := newFakeNetwork()
	w.says["/swarms"] = `{"swarms":[
		{"swarm_name":"new","base_url":"http://10.0.0.2/"}, {"name":"newer","base_url":"http://10.0.0.3"},
		{"swarm_name":"fixed","base_url":"http://10.6.6.6"}, {"swarm_name":"depot","base_url":"http://10.6.6.6"},
		{"swarm_name":"Depot","base_url":"http://10.6.6.6"}, {"swarm_name":"hive","base_url":"http://10.6.6.6"},
		{"swarm_name":"yard","base_url":"http://10.0.0.5"}, {"swarm_name":"new","base_url":"http://10.6.6.6"},
		{"swarm_name":"a b","base_url":"http://10.6.6.6"}, {"swarm_name":"file","base_url":"file:///etc/passwd"}, {"swarm_name":"none"}, {}]}`
	r := w.registry(t, registry.Options{Static: []registry.Static{{Name: "fixed", BaseURL: "http://10.0.0.4"}}})
	register(t, r, registry.Request{Name: "depot", BaseURL: "http://10.0.0.4", Token: "a-token"})
	register(t, r, registry.Request{Name: "yard", BaseURL: "http://10.0.0.5"})
	before := entry(t, r, "depot")
	for range 2 {
		if got := discovered(t, r); got != "new newer yard" {
			t.Errorf("discovered %q", got)
		}
	}
	if got := strings.Join(names(r), " "); got != "fixed depot yard new newer" {
		t.Errorf("known are %s", got)
	}
	if e := entry(t, r, "new"); !e.Discovered || !e.Volatile || e.Active || e.TokenRef != "" || e.BaseURL != "http://10.0.0.2" || e.Public {
		t.Errorf("%+v", e)
	}
	if e := entry(t, r, "depot"); e.BaseURL != before.BaseURL || e.Discovered {
		t.Errorf("%+v", e)
	}
	if e, err := r.Ping(t.Context(), "new"); err != nil || !e.Active || e.Public || e.Entrypoint != "chief" {
		t.Errorf("a discovered swarm is not told to others: %+v, %v", e, err)
	}
}

// Discovered names do not block a registration.
func TestDiscoveredGivesWay(t *testing.T) {
	t.Parallel()
	w := newFakeNetwork()
	w.says["/swarms"] = `{"swarms":[{"swarm_name":"yard","base_url":"http://10.6.6.6"},{"swarm_name":"shed","base_url":"http://10.6.6.6"}]}`
	r := w.registry(t, registry.Options{})
	discovered(t, r)
	register(t, r, registry.Request{Name: "YARD", BaseURL: "http://10.0.0.2", Token: "a-token"})
	register(t, r, registry.Request{Name: "shed", BaseURL: "http://10.0.0.3", Token: "b-token"})
	checkTokens(t, r, map[string][2]string{"yard": {"", ""}, "YARD": {"a-token", "${SWARM_AUTH_TOKEN_YARD}"}, "shed": {"b-token", "${SWARM_AUTH_TOKEN_SHED}"}})
	if e := entry(t, r, "shed"); e.Discovered || e.BaseURL != "http://10.0.0.3" {
		t.Errorf("%+v", e)
	}
	if _, err := r.Remove(t.Context(), "yard", false); err != nil {
		t.Error(err)
	}
	r.SetStatic([]registry.Static{{Name: "shed", BaseURL: "http://10.0.0.4"}})
	if e := entry(t, r, "shed"); !e.Fixed {
		t.Errorf("%+v", e)
	}
}

// Lists fill neither the registry nor one answer.
func TestDiscoverIsBounded(t *testing.T) {
	t.Parallel()
	w := newFakeNetwork()
	r := w.registry(t, registry.Options{})
	for round := range 6 {
		var list []string
		for i := range 100 {
			list = append(list, fmt.Sprintf(`{"swarm_name":"s%d-%d","base_url":"http://10.6.6.6"}`, round, i))
		}
		w.set(func() { w.says["/swarms"] = `{"swarms":[` + strings.Join(list, ",") + `]}` })
		discovered(t, r)
		if want := min(64*(round+1), 256); len(r.Entries()) != want {
			t.Errorf("%d are known, want %d", len(r.Entries()), want)
		}
	}
	register(t, r, registry.Request{Name: "depot", BaseURL: "http://10.0.0.2"})
}

func TestDiscoverRefuses(t *testing.T) {
	t.Parallel()
	w := newFakeNetwork()
	r := w.registry(t, registry.Options{})
	for url, want := range map[string]string{
		"":                        "base_url must be",
		"file:///etc/passwd":      "base_url must be",
		"http://u:p@10.0.0.1":     "credentials",
		"http://169.254.169.254/": "http://169.254.169.254 leads to an address that is not public",
	} {
		if _, err := r.Discover(t.Context(), url); !errors.Is(err, swarm.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", url, err)
		}
	}
	for answer, want := range map[string]string{
		"":                               "does not list swarms: it answers 404",
		"secret words":                   "does not list swarms as a MAIL server does",
		strings.Repeat("x", 1<<20):       "larger than 65536 bytes",
		`{"swarms":"` + directory + `"}`: "does not list swarms as a MAIL server does",
	} {
		w.set(func() {
			delete(w.says, "/swarms")
			if answer != "" {
				w.says["/swarms"] = answer
			}
		})
		if _, err := r.Discover(t.Context(), directory); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.20q: %v", answer, err)
		}
	}
	if len(r.Entries()) != 0 || w.times("169.254.169.254", "/swarms") != 0 {
		t.Errorf("%+v", r.Entries())
	}
}

// What is discovered and never answers is forgotten, and so is what has been
// silent for a day.
func TestDiscoveredIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		w.down["10.0.0.2"] = true
		w.says["/swarms"] = `{"swarms":[{"swarm_name":"never","base_url":"http://10.0.0.2"},{"swarm_name":"once","base_url":"http://10.0.0.3"}]}`
		r := w.registry(t, registry.Options{HealthInterval: every})
		defer running(t, r)()
		discovered(t, r)
		time.Sleep(every)
		if got := strings.Join(names(r), " "); got != "once" || !entry(t, r, "once").Active {
			t.Errorf("known are %s", got)
		}
		w.set(func() { w.down["10.0.0.3"] = true })
		time.Sleep(time.Hour)
		if entry(t, r, "once").Active {
			t.Error("it is well")
		}
		time.Sleep(24 * time.Hour)
		if all := names(r); len(all) != 0 {
			t.Errorf("known are %s", all)
		}
	})
}

// A healthy discovered swarm is checked less often, and removed after a day
// without use. Once it is registered it is like any other.
func TestDiscoveredIsAskedSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		w.says["/swarms"] = `{"swarms":[{"swarm_name":"listed","base_url":"http://10.0.0.2"},{"swarm_name":"pinged","base_url":"http://10.0.0.3"},{"swarm_name":"yard","base_url":"http://10.0.0.4"}]}`
		r := w.registry(t, registry.Options{HealthInterval: every})
		defer running(t, r)()
		discovered(t, r)
		register(t, r, registry.Request{Name: "yard", BaseURL: "http://10.0.0.4"})
		time.Sleep(time.Hour)
		if n := w.times("10.0.0.2", "/health"); n != 6 {
			t.Errorf("the listed one was asked %d times in an hour", n)
		}
		if n := w.times("10.0.0.4", "/health"); n < 100 {
			t.Errorf("the registered one was asked %d times in an hour", n)
		}
		time.Sleep(19 * time.Hour)
		if _, err := r.Ping(t.Context(), "pinged"); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Hour)
		if got := strings.Join(names(r), " "); got != "yard pinged" && got != "pinged yard" {
			t.Errorf("after a day known are %s", got)
		}
		discovered(t, r)
		time.Sleep(23 * time.Hour)
		if all := names(r); len(all) != 3 {
			t.Errorf("listed again, known are %s", all)
		}
		time.Sleep(2 * time.Hour)
		if got := strings.Join(names(r), " "); got != "yard" {
			t.Errorf("in the end known are %s", got)
		}
	})
}

// Without health checks, unused discovered swarms make room for new ones.
func TestDiscoveredMakesRoom(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	w := newFakeNetwork()
	w.says["/swarms"] = `{"swarms":[{"swarm_name":"old","base_url":"http://10.0.0.2"}]}`
	r := w.registry(t, registry.Options{Now: func() time.Time { return now }})
	discovered(t, r)
	now = now.Add(25 * time.Hour)
	w.set(func() { w.says["/swarms"] = `{"swarms":[{"swarm_name":"new","base_url":"http://10.0.0.3"}]}` })
	discovered(t, r)
	if got := strings.Join(names(r), " "); got != "new" {
		t.Errorf("known are %s", got)
	}
}

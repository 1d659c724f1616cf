package registry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/peer/registry"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
)

const every = 30 * time.Second

// One loop checks every swarm, the operator's too. A swarm that is up again is
// described again.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		r := w.registry(t, registry.Options{HealthInterval: every, Static: []registry.Static{{Name: "fixed", BaseURL: "http://10.0.0.1"}}})
		register(t, r, registry.Request{Name: "depot", BaseURL: "http://10.0.0.2"})
		w.set(func() { w.down["10.0.0.3"] = true })
		register(t, r, registry.Request{Name: "late", BaseURL: "http://10.0.0.3"})
		defer running(t, r)()

		time.Sleep(every / 2)
		fixed := entry(t, r, "fixed")
		if !fixed.Active || fixed.Version != "1.3" || fixed.Description != "parts" || fixed.Entrypoint != "chief" || fixed.Public || fixed.LastSeen.IsZero() {
			t.Errorf("the file's: %+v", fixed)
		}
		if late := entry(t, r, "late"); late.Active || !late.LastSeen.IsZero() || !strings.Contains(late.LastError, "refused") {
			t.Errorf("one that is away: %+v", late)
		}

		before := entry(t, r, "depot")
		w.set(func() {
			w.down["10.0.0.2"], w.down["10.0.0.3"] = true, false
			w.says["10.0.0.2/"] = about("more parts", "1.4")
		})
		time.Sleep(2 * every)
		depot := entry(t, r, "depot")
		if depot.Active || depot.LastError == "" || !depot.Since.After(before.LastSeen) || depot.Version != "1.3" || depot.Latency == nil {
			t.Errorf("one that has gone away: %+v", depot)
		}
		if late := entry(t, r, "late"); !late.Active || late.Description != "parts" || !late.Public || late.LastError != "" {
			t.Errorf("one that has come: %+v", late)
		}
		w.set(func() { w.down["10.0.0.2"] = false })
		time.Sleep(2 * every)
		if depot := entry(t, r, "depot"); !depot.Active || depot.Version != "1.4" || depot.Description != "more parts" {
			t.Errorf("one that has come back: %+v", depot)
		}
		if n := w.times("10.0.0.1", "/"); n != 1 {
			t.Errorf("one that was well all the time was asked %d times what it is", n)
		}
	})
}

// Each good health check is reported, by the loop and by a ping; a failed one is not.
func TestOnUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		up := make(chan string, 100)
		r := w.registry(t, registry.Options{
			HealthInterval: every, OnUp: func(name string) { up <- name },
			Static: []registry.Static{{Name: "fixed", BaseURL: "http://10.0.0.1"}, {Name: "gone", BaseURL: "http://10.0.0.2"}},
		})
		w.set(func() { w.down["10.0.0.2"] = true })
		for _, name := range []string{"fixed", "gone"} {
			if _, err := r.Ping(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(up); got != 1 || <-up != "fixed" {
			t.Errorf("%d reports of two pings", got)
		}
		stop := running(t, r)
		time.Sleep(2 * every)
		stop()
		close(up)
		if len(up) == 0 {
			t.Error("the loop reports nothing")
		}
		for name := range up {
			if name != "fixed" {
				t.Errorf("%s is up", name)
			}
		}
	})
}

// The start of a swarm that keeps its tasks in memory is reported at the first sight
// and when its uptime fell, again after an error; that of others is not.
func TestOnStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		const reference, skep = "10.0.0.1", "10.0.0.2"
		begun := time.Now()
		say := func(uptime time.Duration) {
			w.set(func() {
				w.says[reference+"/"] = fmt.Sprintf(`{"protocol_version":"1.3","uptime":%g}`, uptime.Seconds())
				w.says[skep+"/"] = fmt.Sprintf(`{"protocol_version":"1.3","version":"1.3","uptime":%g}`, uptime.Seconds())
			})
		}
		var got []string
		var broken error
		r := w.registry(t, registry.Options{
			Static: []registry.Static{{Name: "reference", BaseURL: "http://" + reference}, {Name: "skep", BaseURL: "http://" + skep}},
			OnStart: func(_ context.Context, name string, at time.Time) error {
				got = append(got, fmt.Sprint(name, " ", at.Sub(begun)))
				return broken
			},
		})
		ping := func() {
			for _, name := range []string{"reference", "skep"} {
				if _, err := r.Ping(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := func(all ...string) {
			t.Helper()
			if !slices.Equal(got, all) {
				t.Errorf("reported %q, want %q", got, all)
			}
			got = nil
		}
		say(time.Hour)
		ping()
		want("reference -1h0m0s")
		time.Sleep(time.Hour)
		say(2*time.Hour - time.Second) // clocks differ
		ping()
		want()
		say(time.Minute)
		broken = errors.New("the disk is slow")
		ping()
		want("reference 59m0s")
		broken = nil
		ping()
		ping()
		want("reference 59m0s")
	})
}

// A report that fails is repeated at the next check: a task that could not be told of its
// peer's start waits for an answer that will not come.
func TestFailedStartIsReportedSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		w.says["/"] = `{"protocol_version":"1.3","uptime":60}`
		var tries []time.Time
		r := w.registry(t, registry.Options{
			HealthInterval: every, Static: []registry.Static{{Name: "reference", BaseURL: "http://10.0.0.1"}},
			OnStart: func(context.Context, string, time.Time) error {
				if tries = append(tries, time.Now()); len(tries) == 1 {
					return errors.New("the disk is slow")
				}
				return nil
			},
		})
		stop := running(t, r)
		time.Sleep(3 * every)
		stop()
		if len(tries) < 2 {
			t.Errorf("reported at %v", tries)
		}
	})
}

// What keeps its tasks in memory is asked what it is at each check.
func TestStartIsSeenSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		w.says["/"] = `{"protocol_version":"1.3","uptime":1}`
		starts := 0
		r := w.registry(t, registry.Options{
			HealthInterval: every, Static: []registry.Static{{Name: "reference", BaseURL: "http://10.0.0.1"}},
			OnStart: func(context.Context, string, time.Time) error { starts++; return nil },
		})
		stop := running(t, r)
		time.Sleep(5 * every)
		stop()
		if asked := w.times("10.0.0.1", "/"); asked < 4 || starts != asked {
			t.Errorf("%d starts, asked %d times", starts, asked)
		}
	})
}

// A swarm that is well is not if its /health says otherwise, and what it says of
// itself is read again at times.
func TestHealthIsAStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		r := w.registry(t, registry.Options{HealthInterval: every})
		register(t, r, registry.Request{Name: "depot", BaseURL: "http://10.0.0.2/mail"})
		w.set(func() { w.says = map[string]string{"/mail": about("new", "1.3")} })
		defer running(t, r)()
		time.Sleep(2 * every)
		if e := entry(t, r, "depot"); e.Active || e.LastError != "it answers 404 Not Found" {
			t.Errorf("%+v", e)
		}
		w.set(func() { w.says["/mail/health"] = "whatever it says" })
		time.Sleep(2 * every)
		if e := entry(t, r, "depot"); !e.Active || e.Description != "new" {
			t.Errorf("%+v", e)
		}
		w.set(func() { w.says["/mail"] = about("newer", "1.3") })
		time.Sleep(11 * time.Minute)
		if e := entry(t, r, "depot"); e.Description != "newer" {
			t.Errorf("%+v", e)
		}
		w.set(func() { w.says["/mail"] = "no JSON" })
		time.Sleep(11 * time.Minute)
		if e := entry(t, r, "depot"); !e.Active || e.Description != "newer" {
			t.Errorf("what it says is broken: %+v", e)
		}
	})
}

// A thousand swarms are checked one after the other, and the file is written once
// for their states, not for every answer.
func TestRunWithMany(t *testing.T) {
	t.Parallel()
	const many = 1000
	path := written(t, many)
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		r := w.registry(t, registry.Options{Path: path, HealthInterval: every})
		stop := running(t, r)
		time.Sleep(every / 3)
		if n, _ := r.Counts(); n < many/5 || n > many/2 {
			t.Errorf("%d are asked in the first third of the time", n)
		}
		time.Sleep(55 * time.Second) // past the minute in which it is written
		asked, failed := r.Counts()
		if asked < 3*many/2 || asked > 3*many || failed != 0 || w.most > 32 {
			t.Errorf("asked %d, failed %d, at most %d at once", asked, failed, w.most)
		}
		before := stat(t, path)
		time.Sleep(58 * time.Second)
		if !os.SameFile(before, stat(t, path)) {
			t.Error("the file is written though nothing but times has changed")
		}
		stop()
		if os.SameFile(before, stat(t, path)) {
			t.Error("the end has written nothing")
		}
		again := open(t, registry.Options{Path: path}).Entries()[7]
		if is := entry(t, r, again.Name); !again.Active || !again.LastSeen.Equal(is.LastSeen) || again.Since.IsZero() || again.Entrypoint != "chief" {
			t.Errorf("kept %+v", again)
		}
	})
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// Swarms that never answer delay the others little: a question ends after ten
// seconds. All of them end with the loop.
func TestRunWithMute(t *testing.T) {
	t.Parallel()
	path := written(t, 100)
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		for _, e := range open(t, registry.Options{Path: path}).Entries()[1:] {
			w.mute[strings.TrimPrefix(e.BaseURL, "http://")] = true
		}
		r := w.registry(t, registry.Options{Path: path, HealthInterval: every})
		stop := running(t, r)
		time.Sleep(5 * time.Minute)
		if n := w.times("10.0.0.0", "/health"); n < 5 {
			t.Errorf("the one that answers was asked %d times", n)
		}
		if e := entry(t, r, "s1"); e.Active || !strings.Contains(e.LastError, "10s") || w.most > 32 {
			t.Errorf("%+v, at most %d at once", e, w.most)
		}
		begun := time.Now()
		stop()
		if took := time.Since(begun); took != 0 {
			t.Errorf("the loop ends after %s", took)
		}
	})
}

// What cannot be written is tried again; mail is not affected.
func TestRunOnABrokenDisk(t *testing.T) {
	t.Parallel()
	path := written(t, 1)
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		r := w.registry(t, registry.Options{Path: path, HealthInterval: every})
		away := filepath.Dir(path) + ".away"
		if err := os.Rename(filepath.Dir(path), away); err != nil {
			t.Fatal(err)
		}
		stop := running(t, r)
		time.Sleep(3 * time.Minute)
		if !entry(t, r, "s0").Active {
			t.Error("what is known depends on the disk")
		}
		if err := os.Rename(away, filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		stop()
		if !open(t, registry.Options{Path: path}).Entries()[0].Active {
			t.Error("it was not written at last")
		}
	})
}

// With interval 0 swarms are checked by Ping only.
func TestPing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		w.down["10.0.0.2"], w.mute["10.0.0.3"] = true, true
		r := w.registry(t, registry.Options{Static: []registry.Static{
			{Name: "well", BaseURL: "http://10.0.0.1"}, {Name: "gone", BaseURL: "http://10.0.0.2"}, {Name: "mute", BaseURL: "http://10.0.0.3"},
			{Name: "meta", BaseURL: "http://169.254.169.254", AllowPrivate: true},
		}})
		defer running(t, r)()
		time.Sleep(time.Hour)
		if n, _ := r.Counts(); n != 0 {
			t.Errorf("%d were asked", n)
		}
		for name, trouble := range map[string]string{"well": "", "gone": "refused the connection", "mute": "within 10s", "meta": "not public"} {
			e, err := r.Ping(t.Context(), name)
			if err != nil || e.Active != (trouble == "") || !strings.Contains(e.LastError, trouble) || e.Since.IsZero() {
				t.Errorf("%s: %+v, %v", name, e, err)
			}
		}
		if e := entry(t, r, "well"); e.Version != "1.3" || w.times("169.254.169.254", "/health") != 0 {
			t.Errorf("%+v", e)
		}
		if _, err := r.Ping(t.Context(), "nobody"); !errors.Is(err, swarm.ErrNotFound) {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		before := entry(t, r, "mute")
		if _, err := r.Ping(ctx, "mute"); !errors.Is(err, context.DeadlineExceeded) || entry(t, r, "mute").Since != before.Since {
			t.Errorf("a caller who leaves: %v", err)
		}
	})
}

// An answer from where a swarm was says nothing of where it is.
func TestPingWhileItMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		w.mute["10.0.0.1"] = true
		r := w.registry(t, registry.Options{Static: []registry.Static{{Name: "depot", BaseURL: "http://10.0.0.1"}}})
		failed := make(chan error)
		go func() {
			_, err := r.Ping(t.Context(), "depot")
			failed <- err
		}()
		synctest.Wait()
		r.SetStatic([]registry.Static{{Name: "depot", BaseURL: "http://10.0.0.2"}})
		if err := <-failed; !errors.Is(err, swarm.ErrNotFound) {
			t.Error(err)
		}
		if e := entry(t, r, "depot"); !e.Since.IsZero() {
			t.Errorf("%+v", e)
		}
	})
}

// The operator's file may change under a running host. What is known of those that
// stay where they are stays, and a registered one gives way with its token.
func TestSetStatic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNetwork()
		r := w.registry(t, registry.Options{HealthInterval: every, Static: []registry.Static{
			{Name: "stays", BaseURL: "http://10.0.0.1"}, {Name: "moves", BaseURL: "http://10.0.0.2"}, {Name: "goes", BaseURL: "http://10.0.0.3"},
		}})
		register(t, r, registry.Request{Name: "depot", BaseURL: "http://10.0.0.4", Token: "depot-token"})
		register(t, r, registry.Request{Name: "yard", BaseURL: "http://10.0.0.5", Token: "yard-token"})
		defer running(t, r)()
		time.Sleep(every)
		r.SetStatic([]registry.Static{
			{Name: "depot", BaseURL: "http://10.0.0.6"}, {Name: "stays", BaseURL: "http://10.0.0.1", Public: true}, {Name: "moves", BaseURL: "http://10.0.0.7"},
		})
		if got := strings.Join(names(r), " "); got != "depot stays moves yard" {
			t.Errorf("known are %s", got)
		}
		if e := entry(t, r, "stays"); !e.Active || !e.Public || e.Version != "1.3" {
			t.Errorf("%+v", e)
		}
		for _, name := range []string{"depot", "moves"} {
			if e := entry(t, r, name); e.Active || !e.Since.IsZero() || !e.Fixed {
				t.Errorf("%+v", e)
			}
		}
		checkTokens(t, r, map[string][2]string{"depot": {"", "[peers.depot] auth_token"}, "yard": {"yard-token", "${SWARM_AUTH_TOKEN_YARD}"}})
		time.Sleep(every)
		if !entry(t, r, "depot").Active || !entry(t, r, "moves").Active {
			t.Error("what is new in the file is not asked")
		}
	})
}

// Only the operator's file makes a name lead to a private address, and no file
// one of this link.
func TestPrivateNames(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"10.0.0.9": "", "127.0.0.1": "", "169.254.169.254": "not public", "0.0.0.0": "not public"} {
		for _, allowed := range []bool{true, false} {
			w := newFakeNetwork()
			r := w.registry(t, registry.Options{
				Egress: egress.Options{Resolver: resolver{address}},
				Static: []registry.Static{{Name: "depot", BaseURL: "http://depot.lan:81", AllowPrivate: allowed}},
			})
			e, err := r.Ping(t.Context(), "depot")
			reached := allowed && want == ""
			if err != nil || e.Active != reached || !reached && !strings.Contains(e.LastError, "not public") || w.times(address, "/health") > 0 != reached {
				t.Errorf("%s, allowed %v: %+v, %v", address, allowed, e, err)
			}
			if _, err := r.Register(t.Context(), registry.Request{Name: "other", BaseURL: "http://other.lan:81"}); !errors.Is(err, swarm.ErrInvalid) {
				t.Errorf("%s: a registered one: %v", address, err)
			}
		}
	}
}

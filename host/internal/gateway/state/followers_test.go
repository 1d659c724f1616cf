package state_test

import (
	"context"
	"testing"
	"testing/synctest"

	"skep/host/internal/gateway/state"
)

// followed are followers of one record, of which a test ends each run.
type followed struct {
	*state.Followers[string]
	runs chan context.Context
	end  chan struct{}
}

func newFollowed() followed {
	return followed{state.NewFollowers[string](), make(chan context.Context, 10), make(chan struct{})}
}

// follow runs until the test or its context ends it.
func (f followed) follow(ctx context.Context, _ state.Key) {
	f.runs <- ctx
	select {
	case <-f.end:
	case <-ctx.Done():
	}
}

// begun is how many runs have begun since the last call.
func (f followed) begun() (n int) {
	synctest.Wait()
	for ; len(f.runs) > 0; n++ {
		<-f.runs
	}
	return n
}

var record = state.Key{Tenant: "t", Gateway: "g", Realm: "r", Kind: "k", Name: "n"}

// TestFollowers: a record has one goroutine, which runs again for a record that has changed: at
// its end, or at once for one that restarts.
func TestFollowers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollowed()
		f.Start(record, f.follow)
		if f.begun() != 0 {
			t.Error("a goroutine runs before Open")
		}
		ctx, stop := context.WithCancel(t.Context())
		f.Open(ctx)
		f.Start(record, f.follow)
		synctest.Wait()
		first := <-f.runs
		f.Start(record, f.follow)
		f.Start(record, f.follow)
		if f.begun() != 0 || first.Err() != nil {
			t.Error("a record that is followed was begun again")
		}
		f.end <- struct{}{}
		if f.begun() != 1 {
			t.Error("a record that has changed was not followed again")
		}
		f.Restart(record, f.follow)
		if f.begun() != 1 {
			t.Error("a record did not restart")
		}
		f.end <- struct{}{}
		if f.begun() != 0 {
			t.Error("a record that has not changed was followed again")
		}
		f.Restart(record, f.follow)
		f.Start(state.Key{Name: "other"}, f.follow)
		if f.begun() != 2 {
			t.Error("two records have other than two goroutines")
		}
		stop()
		f.Start(record, f.follow)
		f.Wait()
		f.begun()
		f.Start(record, f.follow)
		if f.begun() != 0 {
			t.Error("a goroutine runs after Wait")
		}
	})
}

// TestFollowersStop: a record that is stopped is followed anew by the next start alone.
func TestFollowersStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollowed()
		ctx, stop := context.WithCancel(t.Context())
		f.Open(ctx)
		f.Start(record, f.follow)
		f.Start(record, f.follow)
		f.Stop(record)
		if f.begun() > 1 {
			t.Error("a record that was stopped is followed again")
		}
		f.Stop(record)
		f.Start(record, f.follow)
		if f.begun() != 1 {
			t.Error("a record that was stopped is not followed anew")
		}
		stop()
		f.Wait()
	})
}

// TestFollowersValue: a value stands before the run, and until no goroutine of its record is left.
func TestFollowersValue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollowed()
		check := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got, ok := f.Value(record); got != want || ok != (want != "") {
				t.Errorf("%s: %q, %t; want %q", when, got, ok, want)
			}
		}
		f.StartWith(record, "a", f.follow)
		check("before the run", "a")
		ctx, stop := context.WithCancel(t.Context())
		f.Open(ctx)
		f.Start(record, f.follow)
		check("of a run", "a")
		f.StartWith(record, "b", f.follow)
		check("replaced", "b")
		f.end <- struct{}{}
		check("of the next run", "b")
		f.end <- struct{}{}
		check("of none", "")
		f.StartWith(record, "c", f.follow)
		check("of another", "c")
		f.Stop(record)
		check("of one that is stopped", "")
		stop()
		f.Wait()
	})
}

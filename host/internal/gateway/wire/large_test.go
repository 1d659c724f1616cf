package wire_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/gateway/wire"
)

// TestLargeReads: large messages wait for a place as long as their caller does, small ones for
// none.
func TestLargeReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		large := wire.NewLargeReads()
		var releases []func()
		for range cap(large) {
			release, err := large.Acquire(t.Context(), wire.LargeMessage+1)
			if err != nil {
				t.Fatal(err)
			}
			releases = append(releases, release)
		}
		if release, err := large.Acquire(t.Context(), wire.LargeMessage); err != nil {
			t.Error(err)
		} else {
			release()
		}
		left, leave := context.WithCancelCause(t.Context())
		gone, taken := errors.New("gone"), make(chan error, 2)
		for _, ctx := range []context.Context{left, t.Context()} {
			go func() {
				_, err := large.Acquire(ctx, wire.LargeMessage+1)
				taken <- err
			}()
		}
		synctest.Wait()
		if len(taken) > 0 {
			t.Fatal("there are more places than may be")
		}
		leave(gone)
		if err := <-taken; !errors.Is(err, gone) {
			t.Errorf("who left gets %v", err)
		}
		releases[0]()
		if err := <-taken; err != nil {
			t.Error(err)
		}
	})
}

// TestLargeReadsRest (G-057): a place for large messages is free again after a rest as long as it was held;
// small messages need none.
func TestLargeReadsRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		places := make(wire.LargeReads, 1)
		release, err := places.Acquire(t.Context(), wire.LargeMessage+1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := places.Acquire(t.Context(), wire.LargeMessage); err != nil {
			t.Error(err)
		}
		time.Sleep(7 * time.Millisecond)
		release()
		began := time.Now()
		release, err = places.Acquire(t.Context(), wire.LargeMessage+1)
		if rest := time.Since(began); err != nil || rest != 7*time.Millisecond {
			t.Errorf("rested %v, %v", rest, err)
		}
		release()
	})
}

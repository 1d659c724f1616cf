package acp

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/gateway/wire"
)

// TestLargeRead: a large text waits for a place to be read, whether it is a message or none;
// a small one at once.
func TestLargeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := reader{depth: maxDepth, large: wire.NewLargeReads()}
		for range cap(r.large) {
			r.large <- struct{}{}
		}
		done := make(chan error, 1)
		if _, err := r.read([]byte("[]")); err == nil {
			t.Error("a list is taken for a message")
		}
		go func() {
			_, err := r.read([]byte("[" + strings.Repeat("1,", wire.LargeMessage) + "1]"))
			done <- err
		}()
		synctest.Wait()
		if len(done) > 0 {
			t.Fatal("a large message has no place and is read")
		}
		<-r.large
		if err := <-done; err == nil {
			t.Error("a list is taken for a message")
		}
		time.Sleep(time.Nanosecond) // the place rests for the time of the read, which is none here
		if len(r.large) != cap(r.large)-1 {
			t.Errorf("%d places are held", len(r.large))
		}
	})
}

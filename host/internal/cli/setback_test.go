package cli

import (
	"errors"
	"testing"
	"time"

	"skep/host/client"
)

// TestSetbacks wants each cause once, and afterwards only pauses that are noticed.
func TestSetbacks(t *testing.T) {
	t.Parallel()
	s := newShell(nil)
	told := &setbacks{app: newApp(s.Env)}
	full := func(request string) error { return &client.Error{Status: 429, Detail: "full", RequestID: request} }
	told.tell(full("a"), 5*time.Second)
	told.tell(full("b"), 5200*time.Millisecond)
	told.tell(full("c"), time.Second)
	told.tell(errors.New("reset"), 100*time.Millisecond)
	told.tell(errors.New("reset"), 200*time.Millisecond)
	want := "not now: full (429 Too Many Requests, request a); trying again in 5 s\n" +
		"not now: as before; trying again in 5 s\n" +
		"connection lost: reset; trying again\n"
	if got := s.stderr.String(); got != want {
		t.Errorf("stderr:\n%swant:\n%s", got, want)
	}
}

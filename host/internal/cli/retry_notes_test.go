package cli

import (
	"errors"
	"testing"
	"time"

	"skep/host/client"
)

// TestSetbacks: want each cause once, and afterwards only pauses that are noticed.
func TestSetbacks(t *testing.T) {
	t.Parallel()
	s := newShell(nil)
	told := &retryNotes{app: newApp(s.Env)}
	full := func(request string) error { return &client.Error{Status: 429, Detail: "full", RequestID: request} }
	told.report(full("a"), 5*time.Second)
	told.report(full("b"), 5200*time.Millisecond)
	told.report(full("c"), time.Second)
	told.report(errors.New("reset"), 100*time.Millisecond)
	told.report(errors.New("reset"), 200*time.Millisecond)
	want := "not now: full (429 Too Many Requests, request a); trying again in 5 s\n" +
		"not now: as before; trying again in 5 s\n" +
		"connection lost: reset; trying again\n"
	if got := s.stderr.String(); got != want {
		t.Errorf("stderr:\n%swant:\n%s", got, want)
	}
}

package abi_test

import (
	"testing"
	"time"

	"skep/abi"
)

// A span is read in both forms and written in one.
func TestSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{`"90s"`: 90 * time.Second, `"1h30m"`: 90 * time.Minute, `1500`: 1500 * time.Millisecond, `0.5`: 500 * time.Microsecond} {
		var s abi.Span
		if err := s.UnmarshalJSON([]byte(text)); err != nil || time.Duration(s) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(s), err)
		}
	}
	if raw, err := abi.Span(time.Minute).MarshalJSON(); err != nil || string(raw) != `"1m0s"` {
		t.Errorf("%s, %v", raw, err)
	}
}

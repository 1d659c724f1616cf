package mailbox_test

import (
	"errors"
	"testing"

	"skep/host/internal/gateway/mailbox"
)

// TestCursor: a cursor is for the receiver that got it, and no number that was made up.
func TestCursor(t *testing.T) {
	t.Parallel()
	given := mailbox.Cursor("customerQ", 1795898738537830)
	for text, want := range map[string]int64{"": 0, "0": 0, given: 1795898738537830} {
		if n, err := mailbox.ParseCursor("customerQ", text); n != want || err != nil {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"-1", "x", "1795898738537830", "9223372036854775807", given + "0", "0" + given, given[:len(given)-1], "00", "-0", "0-"} {
		if n, err := mailbox.ParseCursor("customerQ", text); n != 0 || !errors.Is(err, mailbox.ErrCursor) {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	}
	if n, err := mailbox.ParseCursor("customerP", given); n != 0 || !errors.Is(err, mailbox.ErrCursor) {
		t.Errorf("another receiver's is %d, %v", n, err)
	}
}

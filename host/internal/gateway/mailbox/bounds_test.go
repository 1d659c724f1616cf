package mailbox_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mailbox"
	"skep/host/internal/gateway/state"
)

// TestBoxesAreBounded: a mailbox that is full, by messages or by bytes, takes the next
// message only after one was removed.
func TestBoxesAreBounded(t *testing.T) {
	t.Parallel()
	const mostBytes = 16 << 20
	for name, c := range map[string]struct{ most, size int }{
		"messages": {mailbox.MaxMessages, 10},
		"bytes":    {mostBytes / state.MaxValue, state.MaxValue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt := gatewaytest.New()
			t.Cleanup(rt.Close)
			realm := gatewaytest.Realm("acme", "depot")
			boxes := mailbox.New(rt.State(), "iacp", read)
			put := func(n int) error {
				text := fmt.Sprintf("a %d ", n)
				text += strings.Repeat("x", c.size-len(text))
				e, err := read([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				_, err = boxes.Put(t.Context(), realm, e, []byte(text))
				return err
			}
			for n := range c.most {
				if err := put(n); err != nil {
					t.Fatalf("message %d: %v", n, err)
				}
			}
			if err := put(c.most); !errors.Is(err, gateway.ErrBusy) {
				t.Fatalf("one too many: %v", err)
			}
			list, _, err := boxes.Read(t.Context(), realm, "a", 0)
			if err != nil || len(list) == 0 {
				t.Fatalf("%d messages, %v", len(list), err)
			}
			if err := boxes.Remove(t.Context(), realm, list[0]); err != nil {
				t.Fatal(err)
			}
			if err := put(c.most); err != nil {
				t.Errorf("after a removal: %v", err)
			}
			if err := put(c.most + 1); !errors.Is(err, gateway.ErrBusy) {
				t.Errorf("full again: %v", err)
			}
		})
	}
}

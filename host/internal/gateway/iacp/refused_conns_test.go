package iacp

import (
	"fmt"
	"testing"
	"time"
)

// TestRefusedConnsLimit (I-060, I-063): of the refused connections of one host one in a minute has a
// record, of all hosts ten; the next record has the count of the others.
func TestRefusedConnsLimit(t *testing.T) {
	t.Parallel()
	var r refusedConns
	now := time.Unix(1_000_000, 0)
	admitted := func(host string) (left int, ok bool) {
		t.Helper()
		return r.admit(host, now)
	}
	if left, ok := admitted("a"); !ok || left != 0 {
		t.Errorf("the first: %d, %t", left, ok)
	}
	for range 5 {
		if _, ok := admitted("a"); ok {
			t.Error("a host has two records in a minute")
		}
	}
	if left, ok := admitted("b"); !ok || left != 5 {
		t.Errorf("another host: %d, %t", left, ok)
	}
	records := 2
	for n := range 100 {
		if _, ok := admitted(fmt.Sprint(n)); ok {
			records++
		}
	}
	if records != 10 {
		t.Errorf("%d records in a minute", records)
	}
	now = now.Add(time.Minute)
	if left, ok := admitted("a"); !ok || left != 92 {
		t.Errorf("a minute later: %d, %t", left, ok)
	}
}

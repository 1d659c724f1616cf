package cluster

import (
	"errors"
	"testing"

	"skep/host/internal/store/postgres"
)

// TestFencePrior: the slots of a host that was killed, in the midst of a group, are free when it is
// started again, without TTL. One that has left, and one without a name, are not looked for.
func TestFencePrior(t *testing.T) {
	t.Parallel()
	dsn := counter(t)
	a, b := joinLife(t, dsn, "a", ""), joinLife(t, dsn, "b", "")
	settle(t, a, b)
	wantShares(t, a, b)
	if err := errors.Join(b.writer.BeginGroup(t.Context()), b.add(t, 1)); err != nil {
		t.Fatal(err)
	}
	again := joinLife(t, dsn, "b again", "b")
	settle(t, a)
	wantShares(t, a, b)
	if err := again.FencePrior(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.writer.CommitGroup(t.Context()); !errors.Is(err, postgres.ErrFenced) {
		t.Errorf("a group of a host that was started again: %v", err)
	}
	wantWritten(t, a, 1, 0)
	settle(t, a)
	wantShares(t, a)
	settle(t, a, again)
	wantShares(t, a, again)
	for _, prior := range []string{"", "b", "nobody"} {
		other := joinLife(t, dsn, "", prior)
		if err := other.FencePrior(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, a, again)
	wantShares(t, a, again)
}

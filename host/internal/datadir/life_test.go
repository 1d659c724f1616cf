package datadir

import (
	"strings"
	"testing"
)

// TestLife: the host before is known by its data directory, unless the machine was started since or is
// another one.
func TestLife(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wantPrior := func(want string) {
		t.Helper()
		if got, err := PriorLife(dir); got != want || err != nil {
			t.Errorf("PriorLife() = %q, %v, want %q", got, err, want)
		}
	}
	wantPrior("")
	life := NewLife()
	mustDo(t, KeepLife(dir, life))
	if readBoot(bootFile) == "" {
		wantPrior("") // the system does not name its start
	} else {
		wantPrior(life)
	}
	name, _, _ := strings.Cut(life, " ")
	for _, other := range []string{name + " another-start", name + " ", name, ""} {
		mustDo(t, KeepLife(dir, other))
		wantPrior("")
	}
	if NewLife() == life {
		t.Error("two starts have one name")
	}
}

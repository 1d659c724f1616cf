package sandbox

import (
	"os"
	"regexp"
	"testing"
)

// The fallback is what test binaries use, so it must follow go.mod.
func TestWazeroVersionIsThatOfGoMod(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`github\.com/tetratelabs/wazero (\S+)`).FindSubmatch(mod)
	if found == nil || string(found[1]) != wazeroVersion {
		t.Errorf("wazeroVersion is %s, go.mod has %s", wazeroVersion, found)
	}
}

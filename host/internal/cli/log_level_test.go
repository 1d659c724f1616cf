package cli

import (
	"strings"
	"testing"
)

// TestLogLevelOfNoComponent: an empty component, as of a variable that is not set, is not all of them.
func TestLogLevelOfNoComponent(t *testing.T) {
	t.Parallel()
	s := newShell(map[string]string{"SKEP_TOKEN": "k"}, "log", "level", "debug", "--component", "", "--url", "http://127.0.0.1:1")
	if code := Main(t.Context(), s.Env); code != exitUsage || !strings.Contains(s.stderr.String(), "--component is empty") {
		t.Errorf("%d %s", code, s.stderr.String())
	}
}

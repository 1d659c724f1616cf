package definition_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// An agent does not leave quarantine because the definition that it was part of has
// gone, whatever came in its place; each attempt is in the audit log.
func TestQuarantineOutlivesDefinition(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, hosttest.GrantedSwarm)
	const little = `"limits":{"memory":"32MiB"}`
	load := func(text string) error {
		_, err := s.As(hosttest.AdaKey).LoadSwarm(t.Context(), text)
		return err
	}
	if err := load(definitionNamed("a", little)); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	confined := fmt.Sprintf(`{"version":1,"agents":[{"tenant":"default","swarm":"hive","agent":"a","module":"%x","since":"2026-11-20T12:00:00Z","why":"a test"}]}`,
		sha256.Sum256(guests.Bytes(t, "plugins/script")))
	if err := os.WriteFile(filepath.Join(s.Data, "quarantine.json"), []byte(confined), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Start()

	attempts := 0
	attempt := func(when string) {
		t.Helper()
		err := load(definitionNamed("b", little))
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest || !strings.Contains(refused.Detail, `agents.b: agent "a" of the same module is in quarantine`) {
			t.Errorf("%s: %v", when, err)
		}
		attempts++
	}
	attempt("while it is in force")
	if err := load(definitionNamed("math", little)); err != nil {
		t.Error("agents of the file:", err)
	}
	attempt("after another was loaded")
	if _, err := s.As(hosttest.AdaKey).UnloadDefinition(t.Context()); err != nil {
		t.Fatal(err)
	}
	attempt("after it was dropped")
	s.Restart()
	attempt("after a restart")
	if err := load(definitionNamed("a", little)); err != nil {
		t.Error("the one in quarantine:", err)
	}
	if err := s.Stop(); err != nil {
		t.Error("stop:", err)
	}
	said := 0
	for _, line := range s.Audited("definition refused: agents.b: ") {
		var e struct {
			Outcome string
			Count   int
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Outcome != "refused" {
			t.Errorf("%v: %s", err, line)
		}
		said += max(1, e.Count)
	}
	if said != attempts {
		t.Errorf("%d of %d attempts are in the audit log", said, attempts)
	}
}

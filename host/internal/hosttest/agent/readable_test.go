package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/hosttest"
)

// What a program may read holds neither the operator's file nor what the host keeps.
func TestReadableFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"worker", "prices"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, ".skep")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	for readable, want := range map[string]string{
		"prices": "", ".": "holds swarm.toml", "..": "holds swarm.toml", "swarm.toml": "holds swarm.toml", ".skep": "which is the host's own",
	} {
		if err := os.WriteFile(filepath.Join(dir, "swarm.toml"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(hosttest.ProgramSwarm, "trusted = true\n", "trusted = true\nreadable = [\""+readable+"\"]\n", 1)
		cfg, err := config.Parse("swarm.toml", []byte(text), dir, config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		faults := definition.Faults(cfg, data)
		if want == "" && len(faults) > 0 || want != "" && (len(faults) == 0 || !strings.Contains(faults.Error(), want) || faults[0].Line == 0) {
			t.Errorf("readable = %q: %v, want %q", readable, faults, want)
		}
	}
}

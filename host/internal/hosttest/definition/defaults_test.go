package definition_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// The defaults of the file equal those in the packages that enforce them.
func TestDefaultsAgree(t *testing.T) {
	const text = `schema = 1
[swarm]
name = "hive"
entrypoint = "a"
[agents.a]
source = "file:defaults_test.go"
enable_entrypoint = true
can_complete_tasks = true
`
	cfg, err := config.Parse("swarm.toml", []byte(text), ".", config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(binary.DefaultCaps(), cfg.Limits.Module); diff != "" {
		t.Errorf("module caps (-package +file):\n%s", diff)
	}
	want := turn.DefaultLimits()
	want.Start = 0 // has no key
	if diff := cmp.Diff(want, definition.TurnLimits(cfg.Agents[0].Limits)); diff != "" {
		t.Errorf("turn limits (-package +file):\n%s", diff)
	}
}

package host_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host"
	"skep/host/internal/config"
	"skep/host/internal/sandbox"
	"skep/host/internal/wasmbin"
)

// The defaults of the file are those of the packages that enforce them.
func TestDefaultsAgree(t *testing.T) {
	const text = `schema = 1
[swarm]
name = "hive"
entrypoint = "a"
[agents.a]
source = "file:modules_test.go"
enable_entrypoint = true
can_complete_tasks = true
`
	cfg, err := config.Parse("swarm.toml", []byte(text), ".", config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wasmbin.DefaultCaps(), host.Caps(cfg.Limits.Module)); diff != "" {
		t.Errorf("module caps (-package +file):\n%s", diff)
	}
	want := sandbox.DefaultLimits()
	want.Start = 0 // has no key
	if diff := cmp.Diff(want, host.TurnLimits(cfg.Agents[0].Limits)); diff != "" {
		t.Errorf("turn limits (-package +file):\n%s", diff)
	}
}

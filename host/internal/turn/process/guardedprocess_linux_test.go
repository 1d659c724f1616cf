package process

import (
	"os/exec"
	"testing"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
)

// A caller may leave before the guard starts: go-plugin then has nothing to kill.
func TestKillBeforeStart(t *testing.T) {
	guard := newGuardedProcess([]string{"/bin/true"}, spec{}, nil)
	if err := guard.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := goplugin.NewClient(&goplugin.ClientConfig{
		Logger: hclog.NewNullLogger(), SkipHostEnv: true,
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			return guard.withEnv(cmd.Env), nil
		},
	})
	if _, err := client.Start(); err == nil {
		t.Error("a killed process starts")
	}
	client.Kill()
	if id := guard.ID(); id != "" {
		t.Errorf("a process that never ran has the id %q", id)
	}
}

package host

import (
	"errors"
	"fmt"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// TestExplainFence: a host that was fenced is to be started again; one whose server has lost writes is
// not told so.
func TestExplainFence(t *testing.T) {
	t.Parallel()
	shared := &Host{opt: Options{Config: &config.Config{}}}
	shared.opt.Config.Cluster.Advertise = "https://a"
	fenced, lost := fmt.Errorf("write: %w", swarm.ErrFenced), fmt.Errorf("%w: %w", swarm.ErrFenced, sqlite.ErrLost)
	if err := shared.explainWrite(fenced); !errors.Is(err, errFenced) || !errors.Is(err, swarm.ErrFenced) {
		t.Errorf("fenced: %v", err)
	}
	if err := shared.explainWrite(lost); errors.Is(err, errFenced) || !errors.Is(err, sqlite.ErrLost) {
		t.Errorf("lost: %v", err)
	}
	alone := &Host{opt: Options{Config: &config.Config{}}}
	if err := alone.explainWrite(fenced); errors.Is(err, errFenced) {
		t.Errorf("alone: %v", err)
	}
}

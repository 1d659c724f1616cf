//go:build unix

package cluster_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"skep/host/internal/api/audit"
	"skep/host/internal/hosttest"
)

// TestAuditHeads: hosts record the heads of each other's audit logs, so that the command of the page finds which one
// was cut, also when all hosts are down.
func TestAuditHeads(t *testing.T) {
	t.Parallel()
	hosts := hostsOf(t, 2)
	for _, p := range hosts {
		waitReady(t, p)
	}
	for _, p := range hosts { // the second one records the last head of the first
		p.Signal(syscall.SIGTERM)
		if code, log := p.End(); code != 0 {
			t.Fatalf("a host ends with %d: %s", code, log)
		}
	}
	const page = "skep audit verify --server one/.skep two/.skep three/audit.log"
	if !strings.Contains(hosttest.ReadText(t, "../../../docs/cluster.md"), page) {
		t.Errorf("the page has no %s", page)
	}
	verify := func(args ...string) (string, error) {
		cmd := exec.Command(hosttest.Program(t), append(strings.Fields(page)[1:4], args...)...)
		cmd.Dir = hosts[0].Dir // the file with the server
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	logs := []string{hosts[0].Data(), filepath.Join(hosts[1].Data(), audit.Name)}
	if out, err := verify(logs...); err != nil || strings.Count(out, "are as they were written") != 2 {
		t.Fatal(out, err)
	}
	if out, err := verify(logs[1]); err == nil || !strings.Contains(out, "the log of host http://"+hosts[0].Addr) {
		t.Error("without the log of a host", out, err)
	}
	file := filepath.Join(logs[0], audit.Name)
	lines := bytes.SplitAfter([]byte(hosttest.ReadText(t, file)), []byte{'\n'})
	if err := os.WriteFile(file, bytes.Join(lines[:len(lines)-2], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := verify(logs...)
	for _, want := range []string{"! the log of host http://" + hosts[0].Addr, " is cut: entry ", "recorded by host http://" + hosts[1].Addr} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("of a log without its last entry: %s %v, want %s", out, err, want)
		}
	}
}

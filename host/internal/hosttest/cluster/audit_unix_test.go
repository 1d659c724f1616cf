//go:build unix

package cluster_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"skep/host/internal/api/audit"
	"skep/host/internal/datadir"
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
	verifyNewLog(t, hosts[0], logs)
}

// verifyNewLog does what the page says of a host whose log was damaged.
func verifyNewLog(t *testing.T, host *hosttest.Process, logs []string) {
	t.Helper()
	page := hosttest.ReadText(t, "../../../docs/cluster.md")
	run := func(line string, replace ...string) (string, error) {
		t.Helper()
		if !strings.Contains(page, "\n$ "+line+"\n") {
			t.Errorf("the page has no %s", line)
		}
		cmd := exec.Command("sh", "-c", strings.NewReplacer(replace...).Replace(line))
		cmd.Dir = host.Dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("mkdir damaged && mv .skep/audit* damaged/"); err != nil {
		t.Fatal(out, err)
	}
	newName, err := datadir.AuditName(host.Data())
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(filepath.Join(host.Data(), audit.Name), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.Record(audit.Entry{Act: audit.ActJoin, Outcome: audit.Done, Target: newName}), log.Close()); err != nil {
		t.Fatal(err)
	}
	const verify = "skep audit verify --server --without NAME one/.skep two/.skep"
	files := []string{"skep", hosttest.Program(t), "one/.skep", logs[0], "two/.skep", logs[1]}
	oldName := hosttest.ReadText(t, filepath.Join(host.Dir, "damaged/audit.name"))
	if out, err := run(verify, append(files, "NAME", oldName)...); err != nil || strings.Count(out, "are as they were written") != 2 {
		t.Error(out, err)
	}
	if out, err := run(verify, append(files, "NAME", newName)...); err == nil || !strings.Contains(out, "--without "+newName+" changes nothing") || !strings.Contains(out, oldName) {
		t.Error(out, err)
	}
}

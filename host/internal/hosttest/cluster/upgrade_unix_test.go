//go:build unix

package cluster_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// replacement is a text in a file of the sources that another version has otherwise.
type replacement struct{ file, text, other string }

// replaceVersion replaces the version of skep.
func replaceVersion(other string) replacement {
	return replacement{"host/internal/cli/version.go", `Skep: "dev"`, fmt.Sprintf("Skep: %q", other)}
}

// changedProgram builds the program from changed sources.
func changedProgram(t *testing.T, changes ...replacement) string {
	t.Helper()
	sources := map[string]string{}
	for _, change := range changes {
		file := filepath.Join(guests.Root(), change.file)
		text := hosttest.ReadText(t, file)
		if strings.Count(text, change.text) != 1 {
			t.Fatalf("%s does not have %q once", change.file, change.text)
		}
		sources[file] = strings.Replace(text, change.text, change.other, 1)
	}
	return hosttest.ProgramFrom(t, sources)
}

// finalize runs the command at a host, and returns what it says.
func finalize(t *testing.T, p *hosttest.Process) string {
	t.Helper()
	cmd := exec.Command(hosttest.Program(t), "cluster", "finalize", "--url", "http://"+p.Addr)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "SKEP_TOKEN="+operatorKey)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("skep cluster finalize: %v: %s", err, out)
	}
	return string(out)
}

// wantLevel waits until hosts have read a feature level.
func wantLevel(t *testing.T, hosts []*hosttest.Process, level int) {
	t.Helper()
	for _, p := range hosts {
		hosttest.Eventually(t, fmt.Sprintf("the host at %s has the feature level %d", p.Addr, level), func() bool {
			_, metrics := hosttest.Fetch(t, http.DefaultClient, "http://"+p.Admin()+"/metrics")
			return strings.Contains(metrics, fmt.Sprintf("\nskep_cluster_feature_level %d\n", level))
		})
	}
}

// TestRollingUpgrade: three hosts get a program of a newer version one after the other under load, and no request
// fails of callers behind a balancer that come again after a 503. What older versions do not erase is written
// once all hosts are new and an operator has said so, and then an older program ends at its start.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	dsn := pgtest.Schema(t)
	older := changedProgram(t, replaceVersion("0.9"), replacement{"host/internal/store/cluster/roster.go", "const Features = 2\n", "const Features = 1\n"})
	var hosts []*hosttest.Process
	for range 4 {
		p := hosttest.NewProcess(t, "127.0.0.1")
		p.Program = older
		hosts = append(hosts, p)
	}
	late := hosts[3]
	hosts = hosts[:3]
	for _, p := range hosts {
		launchShared(t, p, dsn, p.Addr, hosttest.ScriptSwarm)
	}
	loadWhile(t, hosts, func() {
		for i, p := range hosts {
			restart(t, p, "")
			left := len(hosts) - 1 - i
			if left == 0 {
				break
			}
			if said := finalize(t, p); !strings.Contains(said, "the feature level is 1\n") || strings.Count(said, "replace its version, 0.9") != left {
				t.Errorf("beside %d older hosts finalize says %s", left, said)
			}
		}
	})
	clients, usage := clientsOf(hosts), pgtest.Number(t, dsn, "SELECT count(*) FROM usage")
	startLoad(t, clients, "new-", 8, 0)()
	wantLevel(t, hosts, 1)
	if n := usage(); n != 0 {
		t.Errorf("%d rows that older versions do not erase, before the upgrade is finalized", n)
	}
	if said := finalize(t, hosts[0]); !strings.Contains(said, "the feature level is 2\n") || strings.Contains(said, "replace") {
		t.Errorf("beside no older host finalize says %s", said)
	}
	wantLevel(t, hosts, 2)
	startLoad(t, clients, "final-", 8, 0)()
	if usage() == 0 {
		t.Error("nothing new is written once the upgrade is finalized")
	}
	launchShared(t, late, dsn, late.Addr, hosttest.ScriptSwarm)
	const advice = "the hosts have the feature level 2, and this version (0.9) has 1 at most: start a newer one"
	if code, log := late.End(); code == 0 || !strings.Contains(log, advice) {
		t.Errorf("an older program ends with code %d and %s", code, log)
	}
}

// TestBreakingUpgrade: a version that changes tables that older ones use changes nothing beside older hosts: it names
// them, and they go on. Once they are stopped it starts, and the older version is refused.
func TestBreakingUpgrade(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	dsn := pgtest.Schema(t)
	newer := changedProgram(t, replaceVersion("2.0"), replacement{
		"host/internal/store/sqlite/server_schema.go", "PRIMARY KEY (tenant, swarm, agent)\n\t);`,\n}",
		"PRIMARY KEY (tenant, swarm, agent)\n\t);`,\n\t`ALTER TABLE quarantine ADD COLUMN newer BIGINT;`,\n}",
	})
	hosts := hostsAt(t, 2, dsn)
	clients := clientsOf(hosts)
	for _, p := range hosts {
		waitReady(t, p)
	}
	p := hosttest.NewProcess(t, "127.0.0.1")
	p.Program = newer
	launchShared(t, p, dsn, p.Addr, hosttest.ScriptSwarm)
	code, log := p.End()
	for _, want := range []string{"stop all of them first", hosts[0].Addr + " of version dev", hosts[1].Addr + " of version dev"} {
		if code == 0 || !strings.Contains(log, want) {
			t.Errorf("a newer program beside older hosts ends with code %d and without %q: %s", code, want, log)
		}
	}
	startLoad(t, clients, "beside-", 8, 0)()
	for _, older := range hosts {
		older.Signal(syscall.SIGTERM)
		if code, _ := older.End(); code != 0 {
			t.Errorf("the host at %s was stopped and has ended with code %d", older.Addr, code)
		}
	}
	if p.Start(); t.Failed() {
		return
	}
	waitReady(t, p)
	checkTask(t, p.Client(), "beside-0")
	hosts[0].Start()
	if code, log := hosts[0].End(); code == 0 || !strings.Contains(log, "use the newer skep that wrote it") {
		t.Errorf("an older program ends with code %d and %s", code, log)
	}
}

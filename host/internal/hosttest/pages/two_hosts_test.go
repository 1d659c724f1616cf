package pages_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// TestUAMPExample (U-030, U-033, U-034): the commands of the example print what its page says:
// two hosts that know each other by DID alone work on one task.
func TestUAMPExample(t *testing.T) {
	t.Parallel()
	if served, tried := followHosts(t, "uamp", []string{"shop", "lab"}, "8443", "8444", "9443", "9444"); served != 2 || tried != 5 {
		t.Errorf("%d hosts, %d commands", served, tried)
	}
}

// TestEverywhereExample: the commands of the example print what its page says: one task goes
// between two hosts over all protocols.
func TestEverywhereExample(t *testing.T) {
	t.Parallel()
	if served, tried := followHosts(t, "everywhere", []string{"hive", "depot"}, "8443", "8444", "8445", "9443", "9444"); served != 2 || tried != 4 {
		t.Errorf("%d hosts, %d commands", served, tried)
	}
}

// followHosts runs the commands of an example's page, and counts them and the hosts that they
// start. Its ports are replaced by free ones.
func followHosts(t *testing.T, name string, hosts []string, ports ...string) (served, tried int) {
	t.Helper()
	example := "../../../../examples/" + name
	page, p := hosttest.ReadText(t, example+"/README.md"), install(t)
	dir := checkout(t, p, example)
	for _, name := range []string{"curl", "openssl"} {
		hasProgram(t, name, os.Getenv("PATH"))
	}
	var free []string
	for _, port := range ports {
		_, other, err := net.SplitHostPort(hosttest.FreeAddress(t, "127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		free = append(free, port, other)
	}
	replaced := strings.NewReplacer(free...)
	for _, host := range hosts {
		file := filepath.Join(dir, "examples", name, host, "swarm.toml")
		if err := os.WriteFile(file, []byte(replaced.Replace(hosttest.ReadText(t, file))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	vars := ""
	for _, s := range consolesIn(replaced.Replace(page)) {
		if skipped.MatchString(s.command) {
			continue
		}
		if strings.Contains(s.command, "skep serve") {
			serveExample(t, p, dir, s.command)
			served++
			continue
		}
		if strings.HasPrefix(s.command, "export ") {
			vars, s.command, _ = strings.Cut(s.command, "; ")
			vars += "\n"
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", vars+s.command)
		cmd.Dir, cmd.Env = dir, p.env
		if out, err := cmd.Output(); err != nil || !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%v, want\n%s", s.command, out, err, s.output)
		}
		tried++
	}
	return served, tried
}

// serveExample starts a host by its command, waits until it serves, and ends it with the test.
func serveExample(t *testing.T, p *installed, dir, command string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "exec env "+command) // the test stops it
	cmd.Dir, cmd.Env, cmd.Stderr = dir, p.env, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, hosttest.ReadText(t, out.Name()))
		}
		_ = out.Close()
	})
	hosttest.Eventually(t, command+" does not serve", func() bool { return strings.Contains(hosttest.ReadText(t, out.Name()), `"msg":"serving"`) })
}

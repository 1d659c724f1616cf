package hosttest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"skep/host/internal/guests"
)

// Mosquitto is a real broker of MQTT, that is killed and started again on its files.
type Mosquitto struct {
	// Addr is where it listens.
	Addr string

	program, dir string
	kill         func()
}

// StartMosquitto starts a broker with one listener, that keeps each change and ends with
// the test. lines are more of its configuration, and files lie where it looks for them.
func StartMosquitto(t *testing.T, lines string, files map[string]string) *Mosquitto {
	t.Helper()
	b := &Mosquitto{program: SystemProgram(t, "mosquitto"), dir: t.TempDir(), Addr: FreeAddress(t, "127.0.0.1"), kill: func() {}}
	_, port, err := net.SplitHostPort(b.Addr)
	if err != nil {
		t.Fatal(err)
	}
	conf := "listener " + port + " 127.0.0.1\npersistence true\npersistence_location " + b.dir + "/\nautosave_on_changes true\nautosave_interval 1\n"
	if os.Getuid() == 0 { // else it changes to a user of its own, who may not read the files
		conf += "user root\n"
	}
	b.write(t, "conf", conf+lines)
	for name, text := range files {
		b.write(t, name, text)
	}
	t.Cleanup(b.Kill)
	b.Start(t)
	return b
}

func (b *Mosquitto) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// brokerScript runs the broker $0 on the file conf until standard input ends, at the latest
// with the test's process: a panic runs no Cleanup.
const brokerScript = `"$0" -c conf & read -r _; kill -9 $!; wait`

// Start starts the broker again, on its files.
func (b *Mosquitto) Start(t *testing.T) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", brokerScript, b.program)
	cmd.Dir = b.dir
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.kill = sync.OnceFunc(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	Eventually(t, "the broker serves", func() bool {
		conn, err := net.Dial("tcp", b.Addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// Kill kills the broker, if it runs.
func (b *Mosquitto) Kill() { b.kill() }

// SystemProgram finds a program of the distribution. A test is skipped without it, unless
// all of them are required.
func SystemProgram(t testing.TB, name string) string {
	t.Helper()
	path, err := FindSystemProgram(name)
	if err != nil {
		if guests.ToolchainsRequired() {
			t.Fatal(err)
		}
		t.Skipf("this is not tried without %s: %v", name, err)
	}
	return path
}

// FindSystemProgram is the path of a program of the distribution.
func FindSystemProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + name)
}

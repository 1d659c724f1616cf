package hosttest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"skep/host/internal/guests"
)

// Mosquitto is a real broker of MQTT, that is killed and started again on its files.
type Mosquitto struct {
	// Addr is where it listens.
	Addr string

	t            *testing.T
	program, dir string
	cmd          *exec.Cmd
}

// StartMosquitto starts a broker with one listener, that keeps each change and ends with
// the test. lines are more of its configuration, and files lie where it looks for them.
func StartMosquitto(t *testing.T, lines string, files map[string]string) *Mosquitto {
	t.Helper()
	b := &Mosquitto{t: t, program: SystemProgram(t, "mosquitto"), dir: t.TempDir(), Addr: FreeAddress(t, "127.0.0.1")}
	_, port, err := net.SplitHostPort(b.Addr)
	if err != nil {
		t.Fatal(err)
	}
	conf := "listener " + port + " 127.0.0.1\npersistence true\npersistence_location " + b.dir + "/\nautosave_on_changes true\nautosave_interval 1\n"
	if os.Getuid() == 0 { // else it changes to a user of its own, who may not read the files
		conf += "user root\n"
	}
	b.write("conf", conf+lines)
	for name, text := range files {
		b.write(name, text)
	}
	b.Start()
	t.Cleanup(b.Kill)
	return b
}

func (b *Mosquitto) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// Start starts the broker again, on its files.
func (b *Mosquitto) Start() {
	b.t.Helper()
	b.cmd = exec.Command(b.program, "-c", "conf")
	b.cmd.Dir = b.dir
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	Eventually(b.t, "the broker serves", func() bool {
		conn, err := net.Dial("tcp", b.Addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// Kill kills the broker.
func (b *Mosquitto) Kill() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// SystemProgram finds a program of the distribution. A test is skipped without it, unless
// all of them are required.
func SystemProgram(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + name); err == nil {
			return path
		}
		if guests.ToolchainsRequired() {
			t.Fatal(err)
		}
		t.Skipf("this is not tried without %s: %v", name, err)
	}
	return path
}

package hosttest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/guests"
)

// LifeEnv is the variable that names a start of a [Process]: no two have the same.
const LifeEnv = "SKEP_TEST_LIFE"

// LifeName is the value of [LifeEnv] in a host's n-th life.
func LifeName(n int) string { return fmt.Sprintf("life-of-the-host-%03d", n) }

// Process is a host in a process of its own, that is killed and started again on its
// Data. It is the program that operators run.
type Process struct {
	Dir, Addr string
	// Server is more of the table [server].
	Server string
	// Program is the file of the program, empty for [Program].
	Program string
	// Env is more of its environment.
	Env []string
	// admin is the address of the admin listener.
	admin string
	// authorities is a file of the certificates that it trusts, empty for the system's.
	authorities string
	// Life counts the starts.
	Life int

	t         *testing.T
	cacheHome string
	log       *os.File
	mu        sync.Mutex
	cmd       *exec.Cmd
}

// StartProcess starts a host of a swarm whose modules are script.wasm.
func StartProcess(t *testing.T, swarm string) *Process {
	t.Helper()
	p := NewProcess(t, "127.0.0.1")
	p.Launch(swarm)
	return p
}

// NewProcess returns a process that has not been started, with a free address at a
// loopback IP.
func NewProcess(t *testing.T, ip string) *Process {
	t.Helper()
	return &Process{t: t, Dir: t.TempDir(), Addr: FreeAddress(t, ip), admin: FreeAddress(t, ip), cacheHome: CacheHome(t)}
}

// Write writes the host's files: a swarm without a table [server], and script.wasm.
func (p *Process) Write(swarm string) {
	p.t.Helper()
	swarm = onServer(p.t, p.Data(), swarm+fmt.Sprintf("[server]\nlisten = %q\nadmin_listen = %q\n%s", p.Addr, p.admin, p.Server))
	writeStoreKey(p.t, p.Dir)
	for name, data := range map[string][]byte{"swarm.toml": []byte(swarm), "script.wasm": guests.Bytes(p.t, "plugins/script")} {
		if err := os.WriteFile(filepath.Join(p.Dir, name), data, 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

// Launch writes the host's files and starts it. The end of the test kills it, and shows
// its log if the test has failed.
func (p *Process) Launch(swarm string) {
	p.t.Helper()
	p.Write(swarm)
	p.launchWritten()
}

// launchWritten is Launch of files that are there.
func (p *Process) launchWritten() {
	p.t.Helper()
	var err error
	if p.log, err = os.Create(filepath.Join(p.t.TempDir(), "log")); err != nil {
		p.t.Fatal(err)
	}
	p.Start()
	p.t.Cleanup(func() {
		p.Kill()
		_ = p.log.Close()
		if raw, err := os.ReadFile(p.log.Name()); p.t.Failed() && err == nil {
			p.t.Logf("the host at %s has written:\n%s", p.Addr, raw)
		}
	})
}

// Start starts the host again.
func (p *Process) Start() {
	path := cmp.Or(p.Program, Program(p.t))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Life++
	p.cmd = exec.Command(path, "serve", "-c", filepath.Join(p.Dir, "swarm.toml"))
	p.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+p.cacheHome, LifeEnv+"="+LifeName(p.Life))
	p.cmd.Env = append(p.cmd.Env, p.Env...)
	if p.authorities != "" {
		p.cmd.Env = append(p.cmd.Env, "SSL_CERT_FILE="+p.authorities)
	}
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Error(err)
	}
}

// Kill kills the host and waits for its end.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}

// ID is the id of the process, 0 before the first start.
func (p *Process) ID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.cmd.Process == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Log is what all lives of the host have written.
func (p *Process) Log() string {
	p.t.Helper()
	return ReadText(p.t, p.log.Name())
}

// Admin is the address of the admin listener.
func (p *Process) Admin() string { return p.admin }

// Signal sends the host a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Error(err)
	}
}

// Wait waits until the host ends by itself, and returns its exit code as an error unless it is 0.
func (p *Process) Wait() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Wait()
}

// End waits for a host that ends by itself, at most 2 minutes, and returns its exit code and
// its log. One that does not end is killed, and has the code -1.
func (p *Process) End() (code int, log string) {
	p.t.Helper()
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	timer.Stop()
	return cmd.ProcessState.ExitCode(), p.Log()
}

// Data returns the data directory.
func (p *Process) Data() string { return filepath.Join(p.Dir, ".skep") }

// Client returns a client with the key of [ScriptSwarm]. It has reached the host, and
// therefore waits for it from then on.
func (p *Process) Client() *client.Client { return p.ClientAs(ScriptKey) }

// ClientAs is [Process.Client] with a key.
func (p *Process) ClientAs(key string) *client.Client {
	p.t.Helper()
	return p.clientOf(client.Options{URL: "http://" + p.Addr, Token: key})
}

// clientOf is a client that has reached the host, and waits for it from then on.
func (p *Process) clientOf(o client.Options) *client.Client {
	p.t.Helper()
	o.Patience = 2 * time.Minute
	c, err := client.New(o)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(c.Close)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err = c.Root(p.t.Context()); err == nil {
			return c
		}
		if time.Now().After(deadline) {
			p.t.Fatal("the host does not come up: ", err)
		}
	}
}

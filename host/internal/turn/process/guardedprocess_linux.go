package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
	"golang.org/x/sys/unix"
)

// guardedProcess is a process behind its guard, as go-plugin starts and ends it.
type guardedProcess struct {
	command []string
	spec    spec
	program *os.File
	env     []string

	stdout, stderr *os.File
	// lifePipe keeps the guard alive while it is open: the guard reads the other end.
	lifePipe *os.File
	done     chan struct{} // closed when the guard and all below it have ended
	err      error         // exit error, once done

	mu     sync.Mutex
	cmd    *exec.Cmd // nil before the start
	killed bool      // perhaps before the start
	reason string    // why the host ended it; empty if it did not
}

var _ runner.Runner = (*guardedProcess)(nil)

// Limits of an end: for the rest of the output, and for the guard to kill everything.
const (
	drainPipes = time.Second
	guardGrace = 5 * time.Second
)

// newGuardedProcess prepares a guard. command is the host's executable with its first
// arguments.
func newGuardedProcess(command []string, s spec, program *os.File) *guardedProcess {
	return &guardedProcess{command: command, spec: s, program: program, done: make(chan struct{})}
}

// withEnv sets the whole environment of the process.
func (g *guardedProcess) withEnv(env []string) runner.Runner {
	g.env = env
	return g
}

// guardCmd returns the guard's command.
func (g *guardedProcess) guardCmd() *exec.Cmd {
	args := append(append([]string{}, g.command[1:]...), roleGuard, g.spec.encode())
	cmd := exec.Command(g.command[0], args...)
	cmd.Env, cmd.Dir = g.env, g.spec.Dir
	cmd.ExtraFiles = []*os.File{g.program}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals of a terminal are for the host
	return cmd
}

// Start starts the guard.
func (g *guardedProcess) Start(context.Context) (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.killed {
		return errors.New("it was ended before it began")
	}
	var ends [3]*os.File // the guard's
	defer func() {
		for _, f := range ends {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
	}()
	if ends[0], g.lifePipe, err = os.Pipe(); err != nil {
		return err
	}
	if g.stdout, ends[1], err = os.Pipe(); err != nil {
		return err
	}
	if g.stderr, ends[2], err = os.Pipe(); err != nil {
		return err
	}
	cmd := g.guardCmd()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = ends[0], ends[1], ends[2]
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the guard: %w", err)
	}
	g.cmd = cmd
	go g.waitExit()
	return nil
}

// waitExit waits for the guard's end, and then limits the reading of its pipes, which
// another process may hold open.
func (g *guardedProcess) waitExit() {
	waitAndKillOrphans(g.cmd.Process.Pid)
	g.err = g.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(g.err, &exit) && !exit.Exited() { // a killed guard leaves these behind
		g.err = errors.Join(g.err, os.RemoveAll(g.spec.Dir), removeCgroup(g.spec.Cgroup))
	}
	late := time.Now().Add(drainPipes)
	g.err = errors.Join(g.err, g.stdout.SetReadDeadline(late), g.stderr.SetReadDeadline(late), g.lifePipe.Close())
	close(g.done)
}

// Kill ends the process and its descendants, and waits for their end.
func (g *guardedProcess) Kill(context.Context) error {
	g.mu.Lock()
	begun := g.cmd != nil
	g.killed = true
	g.mu.Unlock()
	if !begun {
		return nil
	}
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-g.done:
		return nil
	case <-time.After(guardGrace):
	}
	err := g.cmd.Process.Kill()
	<-g.done
	return err
}

// Wait waits for the end.
func (g *guardedProcess) Wait(context.Context) error {
	<-g.done
	return g.err
}

// setReason records why the host is about to end it.
func (g *guardedProcess) setReason(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reason = why
}

// exitReason explains how it ended; empty while it runs.
func (g *guardedProcess) exitReason() string {
	select {
	case <-g.done:
	default:
		return ""
	}
	g.mu.Lock()
	why := g.reason
	g.mu.Unlock()
	var exit *exec.ExitError
	switch {
	case why != "":
		return why
	case g.err == nil:
		return "it ended by itself"
	case errors.As(g.err, &exit) && exit.ExitCode() == exitTasks:
		return fmt.Sprintf("it had more than %d processes and threads, and was killed", maxTasks)
	case errors.As(g.err, &exit) && !exit.Exited():
		return "its guard was killed (" + exit.Error() + ")"
	case errors.As(g.err, &exit) && exit.ExitCode() == exitQuota:
		return fmt.Sprintf("it kept more than %d MiB or %d files in its directory, and was killed", maxStored>>20, maxEntries)
	case errors.As(g.err, &exit) && exit.ExitCode() > 128:
		return "it was killed by signal " + syscall.Signal(exit.ExitCode()-128).String()
	case errors.As(g.err, &exit):
		return "it ended with exit code " + strconv.Itoa(exit.ExitCode())
	}
	return g.err.Error()
}

// killedForMemory reports whether the guard has killed it for its memory.
func (g *guardedProcess) killedForMemory() bool {
	<-g.done
	var exit *exec.ExitError
	return errors.As(g.err, &exit) && exit.ExitCode() == exitMemory
}

// exitCode is the exit code of the guard; 0 while it runs, or if there is none.
func (g *guardedProcess) exitCode() int {
	select {
	case <-g.done:
	default:
		return 0
	}
	var exit *exec.ExitError
	if errors.As(g.err, &exit) {
		return max(0, exit.ExitCode())
	}
	return 0
}

// memoryUsed is the private memory of its processes, in bytes.
func (g *guardedProcess) memoryUsed() int64 {
	taken, _ := memoryAndThreads(inSession(g.cmd.Process.Pid))
	return taken
}

// admits reports whether a connection is from one of its processes. They cannot leave the
// guard's session. See SO_PEERCRED in unix(7).
func (g *guardedProcess) admits(conn net.Conn) bool {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	if failed := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); failed != nil || err != nil {
		return false
	}
	session, alive := sessionOf(int(peer.Pid))
	return alive && session == g.cmd.Process.Pid
}

// Diagnose returns nothing: the output is in the log.
func (g *guardedProcess) Diagnose(context.Context) string { return "" }

// Stdout is the source of the handshake.
func (g *guardedProcess) Stdout() io.ReadCloser { return g.stdout }

// Stderr is the process's output for people.
func (g *guardedProcess) Stderr() io.ReadCloser { return g.stderr }

// Name is the name in messages.
func (g *guardedProcess) Name() string { return g.spec.Name }

// ID is the guard's process id; empty before the start, and for good if it was killed
// before.
func (g *guardedProcess) ID() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd == nil {
		return ""
	}
	return strconv.Itoa(g.cmd.Process.Pid)
}

// PluginToHost accepts only an address inside the process's directory.
func (g *guardedProcess) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" || !strings.HasPrefix(filepath.Clean(address), g.spec.Dir+"/") {
		return "", "", fmt.Errorf("it says that it listens at %.64q, and must do so at a Unix socket in the directory of PLUGIN_UNIX_SOCKET_DIR", network+":"+address)
	}
	return network, address, nil
}

// HostToPlugin changes nothing.
func (g *guardedProcess) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

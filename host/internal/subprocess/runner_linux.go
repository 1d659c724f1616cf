package subprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

// guarded is a process behind its guard, as go-plugin starts and ends it.
type guarded struct {
	command []string
	spec    spec
	program *os.File
	env     []string

	stdout, stderr *os.File
	// life keeps the guard alive: it reads the other end.
	life *os.File
	done chan struct{} // closed when the guard has ended, and everything with it
	err  error         // how, once done

	mu  sync.Mutex
	cmd *exec.Cmd // nil until it is started
	off bool      // it was ended, perhaps before it began
	why string    // the host has ended it, empty where it knows none
}

var _ runner.Runner = (*guarded)(nil)

// Bounds of an end: what may still come through the pipes, and how long a guard
// may take to kill everything.
const (
	drainPipes = time.Second
	guardGrace = 5 * time.Second
)

// newGuarded prepares a guard. command is the host's own executable with its
// first arguments.
func newGuarded(command []string, s spec, program *os.File) *guarded {
	return &guarded{command: command, spec: s, program: program, done: make(chan struct{})}
}

// within sets the whole environment of the process.
func (g *guarded) within(env []string) runner.Runner {
	g.env = env
	return g
}

// child is the guard's command line.
func (g *guarded) child() *exec.Cmd {
	args := append(append([]string{}, g.command[1:]...), roleGuard, g.spec.encode())
	cmd := exec.Command(g.command[0], args...)
	cmd.Env, cmd.Dir = g.env, g.spec.Dir
	cmd.ExtraFiles = []*os.File{g.program}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what a terminal sends is for the host
	return cmd
}

// Start starts the guard.
func (g *guarded) Start(context.Context) (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.off {
		return errors.New("it was ended before it began")
	}
	var ends [3]*os.File // of the guard
	defer func() {
		for _, f := range ends {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
	}()
	if ends[0], g.life, err = os.Pipe(); err != nil {
		return err
	}
	if g.stdout, ends[1], err = os.Pipe(); err != nil {
		return err
	}
	if g.stderr, ends[2], err = os.Pipe(); err != nil {
		return err
	}
	cmd := g.child()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = ends[0], ends[1], ends[2]
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the guard: %w", err)
	}
	g.cmd = cmd
	go g.wait()
	return nil
}

// wait waits for the guard's end. What holds its pipes open then is not waited
// for.
func (g *guarded) wait() {
	awaitEnd(g.cmd.Process.Pid)
	g.err = g.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(g.err, &exit) && !exit.Exited() { // a guard that was killed leaves it behind
		g.err = errors.Join(g.err, os.RemoveAll(g.spec.Dir))
	}
	late := time.Now().Add(drainPipes)
	g.err = errors.Join(g.err, g.stdout.SetReadDeadline(late), g.stderr.SetReadDeadline(late), g.life.Close())
	close(g.done)
}

// Kill ends the process and everything it has started, and waits for that.
func (g *guarded) Kill(context.Context) error {
	g.mu.Lock()
	begun := g.cmd != nil
	g.off = true
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
func (g *guarded) Wait(context.Context) error {
	<-g.done
	return g.err
}

// blame says why the host is about to end it.
func (g *guarded) blame(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.why = why
}

// ended says how it ended; empty while it runs.
func (g *guarded) ended() string {
	select {
	case <-g.done:
	default:
		return ""
	}
	g.mu.Lock()
	why := g.why
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
	case errors.As(g.err, &exit) && exit.ExitCode() == exitRoom:
		return fmt.Sprintf("it kept more than %d MiB or %d files in its directory, and was killed", maxStored>>20, maxEntries)
	case errors.As(g.err, &exit) && exit.ExitCode() > 128:
		return "it was killed by signal " + syscall.Signal(exit.ExitCode()-128).String()
	case errors.As(g.err, &exit):
		return "it ended with exit code " + strconv.Itoa(exit.ExitCode())
	}
	return g.err.Error()
}

// tooBig reports whether the guard has killed it for its memory.
func (g *guarded) tooBig() bool {
	<-g.done
	var exit *exec.ExitError
	return errors.As(g.err, &exit) && exit.ExitCode() == exitMemory
}

// code is the exit code of the guard, 0 while it runs and where it has none.
func (g *guarded) code() int {
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

// memory is what its processes have to themselves now, in bytes.
func (g *guarded) memory() int64 {
	taken, _ := taken(inSession(g.cmd.Process.Pid))
	return taken
}

// Diagnose has nothing to add: the log has what the process wrote.
func (g *guarded) Diagnose(context.Context) string { return "" }

// Stdout is where the handshake comes from.
func (g *guarded) Stdout() io.ReadCloser { return g.stdout }

// Stderr is what the process tells people.
func (g *guarded) Stderr() io.ReadCloser { return g.stderr }

// Name is what messages call it.
func (g *guarded) Name() string { return g.spec.Name }

// ID is the guard's process number.
func (g *guarded) ID() string { return strconv.Itoa(g.cmd.Process.Pid) }

// PluginToHost lets the host go where the process says that it listens, which is in
// the directory that belongs to it.
func (g *guarded) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" || !strings.HasPrefix(filepath.Clean(address), g.spec.Dir+"/") {
		return "", "", fmt.Errorf("it says that it listens at %.64q, and must do so at a Unix socket in the directory of PLUGIN_UNIX_SOCKET_DIR", network+":"+address)
	}
	return network, address, nil
}

// HostToPlugin changes nothing.
func (g *guarded) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

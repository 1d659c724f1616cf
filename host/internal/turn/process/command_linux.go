package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// inputFD is the guard's descriptor of the command's input; its own standard input is the
// pipe that closes with the host.
const inputFD = 3

// Running is a started command. It is safe for concurrent use.
type Running struct {
	// Input and Output are pipes with deadlines. Close closes both.
	Input, Output *os.File

	lifePipe *os.File
	output   *words
	cmd      *exec.Cmd
	done     chan struct{}
	err      error // exit error of the guard, once done
	once     sync.Once
}

// Start starts a command behind a guard. guard is the host's executable and [Command].
func Start(guard []string, l CommandLine) (_ *Running, err error) {
	if len(guard) == 0 {
		return nil, fmt.Errorf("start %s: the host does not know its own executable, which must start it", l.Name)
	}
	if l.Logger == nil {
		l.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Running{done: make(chan struct{}), output: &words{log: l.Logger, scrub: l.Scrub}}
	theirs, err := r.makePipes()
	defer func() { err = errors.Join(err, closeAll(theirs)) }()
	if err != nil {
		return nil, errors.Join(err, closeAll([]*os.File{r.lifePipe, r.Input, r.Output}))
	}
	r.cmd = exec.Command(guard[0], append(append([]string{}, guard[1:]...), roleGuardCommand, commandOrder{l.Name, l.Argv, l.Dir}.encode())...)
	r.cmd.Env, r.cmd.Dir = l.Env, "/"
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = theirs[0], theirs[2], r.output
	r.cmd.ExtraFiles = theirs[1:2]
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals of a terminal are for the host
	r.cmd.WaitDelay = drainPipes
	if err := r.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the guard of %s: %w", l.Name, err), closeAll([]*os.File{r.lifePipe, r.Input, r.Output}))
	}
	go func() {
		defer close(r.done)
		waitAndKillOrphans(r.cmd.Process.Pid)
		r.err = r.cmd.Wait()
		_ = r.Output.SetReadDeadline(time.Now().Add(drainPipes)) // it may be closed
	}()
	return r, nil
}

// makePipes creates three pipes and returns the guard's ends: lifePipe, and the command's
// input and output.
func (r *Running) makePipes() (theirs []*os.File, err error) {
	for i, ours := range []**os.File{&r.lifePipe, &r.Input, &r.Output} {
		in, out, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		if i < 2 {
			in, out = out, in // this side writes
		}
		*ours, theirs = in, append(theirs, out)
	}
	return theirs, nil
}

func closeAll(files []*os.File) (err error) {
	for _, f := range files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// Done is closed when the command and all its descendants have ended.
func (r *Running) Done() <-chan struct{} { return r.done }

// Ended explains how the command ended, with its last output; empty while it runs.
func (r *Running) Ended() string {
	select {
	case <-r.done:
	default:
		return ""
	}
	how := r.err
	if errors.Is(how, exec.ErrWaitDelay) {
		how = nil
	}
	return (&guardedProcess{done: r.done, err: how}).exitReason() + r.output.lastWords()
}

// LastOutput quotes the last line of stderr, as the end of an error; empty for none.
func (r *Running) LastOutput() string { return r.output.lastWords() }

// Close closes the input, waits for grace, then kills the command and its descendants.
func (r *Running) Close(grace time.Duration) error {
	r.once.Do(func() {
		_ = r.Input.Close() // the writer may have closed it
		waitFor(r.done, grace)
		_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
		if waitFor(r.done, guardGrace); r.Ended() == "" {
			_ = r.cmd.Process.Kill()
		}
		<-r.done
		_, _ = r.lifePipe.Close(), r.Output.Close()
	})
	<-r.done
	return nil
}

// waitFor waits until done is closed, or for the given time.
func waitFor(done <-chan struct{}, most time.Duration) {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}

// runCommandRole is [Exec] for commands.
func runCommandRole(role, text string, stderr io.Writer) int {
	var o commandOrder
	if err := json.Unmarshal([]byte(text), &o); err != nil || len(o.Argv) == 0 {
		fmt.Fprintln(stderr, "skep: no command to start")
		return exitSetup
	}
	if role == roleExecCommand {
		fmt.Fprintf(stderr, "skep: start %s: %v\n", o.Name, execCommand(o))
		return exitSetup
	}
	code, err := guardCommand(o)
	if err != nil {
		fmt.Fprintf(stderr, "skep: guard %s: %v\n", o.Name, err)
	}
	return code
}

// guardCommand is [guard] for a command, without a memory limit.
func guardCommand(o commandOrder) (code int, err error) {
	v, err := startWatchdog()
	if err != nil {
		return exitSetup, err
	}
	input := os.NewFile(inputFD, "input")
	child, err := os.StartProcess(v.executable, []string{v.executable, Command, roleExecCommand, o.encode()}, &os.ProcAttr{
		Dir: o.Dir, Env: os.Environ(), Files: []*os.File{input, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return exitSetup, err
	}
	err = input.Close()
	code = waitForEnd(spec{}, reapChildren(child.Pid), v.stop, v.hostGone)
	return code, errors.Join(err, killAll())
}

// execCommand drops what no server needs, and becomes the command. It returns only an
// error.
func execCommand(o commandOrder) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the guard: %w", err)
	}
	if os.Getppid() == 1 {
		return errors.New("the guard is gone")
	}
	for kind, most := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: maxCommandFiles} {
		var now unix.Rlimit
		if err := unix.Getrlimit(kind, &now); err != nil {
			return err
		}
		most = min(most, now.Max)
		if err := unix.Setrlimit(kind, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit resources: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	return unix.Exec(o.Argv[0], o.Argv, os.Environ())
}

// maxCommandFiles bounds the open files of a command.
const maxCommandFiles = 1024

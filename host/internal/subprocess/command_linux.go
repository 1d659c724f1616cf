package subprocess

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

// inputFD is where a command's guard has the command's input; its own is the pipe
// that tells it that the host is gone.
const inputFD = 3

// Running is a command that was started. Its input and output are pipes; it is
// safe for concurrent use.
type Running struct {
	// Input and Output have deadlines. Close closes both.
	Input, Output *os.File

	life *os.File
	said *words
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how the guard has ended, once done
	once sync.Once
}

// Start starts a command behind a guard. guard is the host's executable and
// [Command].
func Start(guard []string, l Line) (_ *Running, err error) {
	if len(guard) == 0 {
		return nil, fmt.Errorf("start %s: the host does not know its own executable, which must start it", l.Name)
	}
	if l.Logger == nil {
		l.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Running{done: make(chan struct{}), said: &words{log: l.Logger, scrub: l.Scrub}}
	theirs, err := r.pipes()
	defer func() { err = errors.Join(err, closeAll(theirs)) }()
	if err != nil {
		return nil, errors.Join(err, closeAll([]*os.File{r.life, r.Input, r.Output}))
	}
	r.cmd = exec.Command(guard[0], append(append([]string{}, guard[1:]...), roleKeep, order{l.Name, l.Argv, l.Dir}.encode())...)
	r.cmd.Env, r.cmd.Dir = l.Env, "/"
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = theirs[0], theirs[2], r.said
	r.cmd.ExtraFiles = theirs[1:2]
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what a terminal sends is for the host
	r.cmd.WaitDelay = drainPipes
	if err := r.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the guard of %s: %w", l.Name, err), closeAll([]*os.File{r.life, r.Input, r.Output}))
	}
	go func() {
		defer close(r.done)
		awaitEnd(r.cmd.Process.Pid)
		r.err = r.cmd.Wait()
		_ = r.Output.SetReadDeadline(time.Now().Add(drainPipes)) // it may be closed
	}()
	return r, nil
}

// pipes makes the guard's ends of three pipes: its life, and the input and the
// output of the command.
func (r *Running) pipes() (theirs []*os.File, err error) {
	for i, ours := range []**os.File{&r.life, &r.Input, &r.Output} {
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

// Done is closed when the command, and all that it has started, has ended.
func (r *Running) Done() <-chan struct{} { return r.done }

// Ended says how it has ended, with its last words; empty while it runs.
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
	return (&guarded{done: r.done, err: how}).ended() + r.said.lastWords()
}

// LastWords is what it wrote last to stderr, to be put behind an error; empty for
// nothing.
func (r *Running) LastWords() string { return r.said.lastWords() }

// Close ends the command: it has grace to end by itself once its input is closed,
// then it is killed with everything that it has started.
func (r *Running) Close(grace time.Duration) error {
	r.once.Do(func() {
		_ = r.Input.Close() // again where the writer has closed it
		wait(r.done, grace)
		_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
		if wait(r.done, guardGrace); r.Ended() == "" {
			_ = r.cmd.Process.Kill()
		}
		<-r.done
		_, _ = r.life.Close(), r.Output.Close()
	})
	<-r.done
	return nil
}

// wait waits for the end of done, or until the time is over.
func wait(done <-chan struct{}, most time.Duration) {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}

// command is [Exec] for commands.
func command(role, text string, stderr io.Writer) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil || len(o.Argv) == 0 {
		fmt.Fprintln(stderr, "skep: no command to start")
		return exitSetup
	}
	if role == roleBecome {
		fmt.Fprintf(stderr, "skep: start %s: %v\n", o.Name, become(o))
		return exitSetup
	}
	code, err := keep(o)
	if err != nil {
		fmt.Fprintf(stderr, "skep: guard %s: %v\n", o.Name, err)
	}
	return code
}

// keep is [guard] for a command, whose memory nobody watches.
func keep(o order) (code int, err error) {
	v, err := keepVigil()
	if err != nil {
		return exitSetup, err
	}
	input := os.NewFile(inputFD, "input")
	child, err := os.StartProcess(v.self, []string{v.self, Command, roleBecome, o.encode()}, &os.ProcAttr{
		Dir: o.Dir, Env: os.Environ(), Files: []*os.File{input, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return exitSetup, err
	}
	err = input.Close()
	code = oversee(spec{}, reap(child.Pid), v.stop, v.gone)
	return code, errors.Join(err, killAll())
}

// become gives up what no server needs, and becomes the command. It returns only
// an error.
func become(o order) error {
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

// maxCommandFiles is how many files a command may have open.
const maxCommandFiles = 1024

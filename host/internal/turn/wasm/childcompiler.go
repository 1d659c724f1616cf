package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// ChildCompiler compiles untrusted modules in a process of its own: a compilation
// can take a thousand times the memory and time that the size of its input suggests,
// and it cannot be stopped in this process. The code goes to the compile cache.
type ChildCompiler struct {
	// Command starts it: a program and arguments that end in a call of
	// [CompileChild]. A directory for the code and the limits are appended.
	Command []string
	// Memory, CPU and Wall bound it; zero means 512 MiB, 10 s and 30 s.
	Memory int64
	CPU    time.Duration
	Wall   time.Duration
}

// maxMetered bounds what a child reads: a module at its largest, metered.
const maxMetered = 256 << 20

func (c ChildCompiler) withDefaults() ChildCompiler {
	if c.Memory <= 0 {
		c.Memory = slowdown * 512 << 20
	}
	if c.CPU <= 0 {
		c.CPU = slowdown * 10 * time.Second
	}
	if c.Wall <= 0 {
		c.Wall = slowdown * 30 * time.Second
	}
	return c
}

// run starts the child and waits for it, or kills it at a limit.
func (c ChildCompiler) run(ctx context.Context, dir string, metered []byte) error {
	if len(c.Command) == 0 {
		return &CompileError{Err: errors.New("there is no program that compiles it apart from the host")}
	}
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, c.Wall, fmt.Errorf("took longer than %v", c.Wall))
	defer cancel()
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	args := append(append([]string{}, c.Command[1:]...), dir, fmt.Sprint(c.Memory), fmt.Sprint(int64(c.CPU.Seconds())))
	cmd := exec.CommandContext(ctx, c.Command[0], args...)
	cmd.Args[0] = "skep" // whatever the name of the file
	// GODEBUG may switch features of the processor off, and code must be for the same.
	cmd.Env = []string{fmt.Sprintf("GOMEMLIMIT=%d", c.Memory*3/4), "GODEBUG=" + os.Getenv("GODEBUG")}
	cmd.Stdin = bytes.NewReader(metered)
	var said bytes.Buffer
	cmd.Stderr = &limitedBuffer{&said, 4 << 10}
	if err := cmd.Start(); err != nil {
		return &CompileError{Err: fmt.Errorf("start the compiler: %w", err)}
	}
	watched := make(chan struct{})
	go func() { defer close(watched); watchMemory(ctx, cmd.Process.Pid, c.Memory, kill) }()
	err := cmd.Wait()
	cause := context.Cause(ctx)
	left := err != nil && caller.Err() != nil
	kill(nil)
	<-watched
	if left { // the module is not at fault
		return &CompileError{Err: fmt.Errorf("compiling it was stopped: %w", cause)}
	}
	return c.childError(dir, err, cause, said.String())
}

// childError explains to the operator why a child failed: a *CompileError unless the
// module is at fault.
func (c ChildCompiler) childError(dir string, err, cause error, said string) error {
	var exit *exec.ExitError
	said = strings.TrimSpace(said)
	switch {
	case err == nil:
		return nil
	case cause != nil:
		return fmt.Errorf("compiling it was stopped: %w", cause)
	case !errors.As(err, &exit):
		return &CompileError{Err: fmt.Errorf("run the compiler: %w", err)}
	}
	status, _ := exit.Sys().(syscall.WaitStatus)
	switch {
	case exit.ExitCode() == exitInvalid:
		return errors.New(said)
	case exit.ExitCode() == exitCache:
		return &CompileError{Dir: dir, Err: errors.New(said)}
	case exit.ExitCode() == exitChild:
		return &CompileError{Err: errors.New(said)}
	case exit.UserTime()+exit.SystemTime() >= max(c.CPU.Truncate(time.Second), time.Second), strings.Contains(said, "SIGXCPU"):
		return fmt.Errorf("compiling it was stopped: it needs more than %v of computing time", c.CPU)
	case status.Signaled():
		return &CompileError{Err: fmt.Errorf(
			"its compiler was ended by signal %d (%[1]v), which skep has not sent; the system may be short of memory", status.Signal())}
	case exit.ExitCode() == exitMemory, strings.Contains(said, "out of memory"), strings.Contains(said, "allocate"):
		return fmt.Errorf("compiling it was stopped: it needs more than %d MiB of memory", c.Memory>>20)
	}
	first, _, _ := strings.Cut(said, "\n")
	return fmt.Errorf("its compiler failed: %s", first)
}

// limitedBuffer keeps the first bytes of a child's error output.
type limitedBuffer struct {
	to   *bytes.Buffer
	left int
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.to.Write(p[:n])
	return len(p), nil
}

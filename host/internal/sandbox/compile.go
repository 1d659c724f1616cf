package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Child is how modules of strangers are compiled: in a process of their own,
// because a compiler's memory and time can be a thousand times its input's,
// and because nothing stops it in here. The child fills the compile cache.
type Child struct {
	// Command starts it: a program and arguments that end in a call of
	// [CompileChild]. The cache directory and the limits are appended.
	Command []string
	// Memory, CPU and Wall bound it; zero means 512 MiB, 10 s and 30 s.
	Memory int64
	CPU    time.Duration
	Wall   time.Duration
}

// maxMetered bounds what a child reads: a module at its largest, metered.
const maxMetered = 256 << 20

func (c Child) withDefaults() Child {
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

// compile makes sure that the cache holds a module's code, so that compiling
// it here costs no more than reading it.
func (c Child) compile(ctx context.Context, cacheDir string, metered []byte) error {
	mark := compiledMark(cacheDir, metered)
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	if err := c.withDefaults().run(ctx, cacheDir, metered); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o600)
}

// compiledMark is the file that says that a child has compiled a module.
func compiledMark(cacheDir string, metered []byte) string {
	sum := sha256.Sum256(metered)
	return filepath.Join(cacheDir, cacheVersion(), "compiled-"+hex.EncodeToString(sum[:]))
}

// run starts the child and waits for it, or kills it at a limit.
func (c Child) run(ctx context.Context, cacheDir string, metered []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Wall, fmt.Errorf("took longer than %v", c.Wall))
	defer cancel()
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	args := append(append([]string{}, c.Command[1:]...), cacheDir, fmt.Sprint(c.Memory), fmt.Sprint(int64(c.CPU.Seconds())))
	cmd := exec.CommandContext(ctx, c.Command[0], args...)
	cmd.Args[0] = "skep" // whatever the file is called
	cmd.Env = []string{fmt.Sprintf("GOMEMLIMIT=%d", c.Memory*3/4)}
	cmd.Stdin = bytes.NewReader(metered)
	var said bytes.Buffer
	cmd.Stderr = &limited{&said, 4 << 10}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the compiler: %w", err)
	}
	watched := make(chan struct{})
	go func() { defer close(watched); watchMemory(ctx, cmd.Process.Pid, c.Memory, kill) }()
	err := cmd.Wait()
	cause := context.Cause(ctx)
	kill(nil)
	<-watched
	return c.verdict(err, cause, said.String())
}

// verdict says in the operator's words why a child did not succeed.
func (c Child) verdict(err, cause error, said string) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case cause != nil:
		return fmt.Errorf("compiling it was stopped: %w", cause)
	case errors.As(err, &exit) && exit.ExitCode() == exitInvalid:
		return fmt.Errorf("%s; the module is not valid WebAssembly", strings.TrimSpace(said))
	case errors.As(err, &exit):
		return fmt.Errorf("compiling it was stopped: it needs more than %v of computing time or %d MiB of memory", c.CPU, c.Memory>>20)
	}
	return fmt.Errorf("run the compiler: %w", err)
}

// exitInvalid is the exit code of a child whose module is refused.
const exitInvalid = 3

// CompileChild is the child's side: it limits itself, reads a metered module
// from in, and compiles it into the cache. args are what [Child.Command] was
// completed with. It returns the process's exit code.
func CompileChild(ctx context.Context, in io.Reader, errs io.Writer, args []string) int {
	var memory, seconds int64
	if len(args) != 3 {
		fmt.Fprintln(errs, "usage: CACHE MEMORY SECONDS")
		return 2
	}
	if _, err := fmt.Sscan(args[1]+" "+args[2], &memory, &seconds); err != nil {
		fmt.Fprintln(errs, err)
		return 2
	}
	if err := limitSelf(memory, seconds); err != nil {
		fmt.Fprintln(errs, "limit this process:", err)
		return 1
	}
	if err := compileInto(ctx, in, args[0]); err != nil {
		fmt.Fprintln(errs, err)
		return exitInvalid
	}
	return 0
}

func compileInto(ctx context.Context, in io.Reader, dir string) (err error) {
	wasm, err := io.ReadAll(io.LimitReader(in, maxMetered))
	if err != nil {
		return err
	}
	cache, err := openCache(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cache.Close(ctx)) }()
	rt := wazero.NewRuntimeWithConfig(ctx, runtimeConfig().WithCompilationCache(cache))
	defer func() { err = errors.Join(err, rt.Close(ctx)) }()
	_, err = rt.CompileModule(ctx, wasm)
	return err
}

// runtimeConfig is how every runtime of this package is set up; the cache's
// key depends on it.
func runtimeConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
}

// limited keeps the first bytes of what a child says.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.to.Write(p[:n])
	return len(p), nil
}

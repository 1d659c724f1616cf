package wasm

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"skep/host/internal/turn"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Children that something happens to before they compile.
const (
	killedArg   = "__compile-killed"
	fullArg     = "__compile-full"
	elsewhere   = "__compile-elsewhere"
	nothingLeft = "its compiler was ended by signal 9 (killed), which skep has not sent"
)

var spoiled = map[string]func(){
	killedArg: func() { must(syscall.Kill(os.Getpid(), syscall.SIGKILL)) },
	// A disk is full for who may write no file of that size.
	fullArg:   func() { must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64, Max: 64})) },
	elsewhere: func() { os.Exit(0) },
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// What befalls the compiler is not the module's fault.
func TestChildFaults(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		killedArg: nothingLeft, fullArg: "file too large; the compile cache is ", elsewhere: errForeignCode.Error(),
	} {
		dir := t.TempDir() + "/cache"
		e := withChild(t, dir, ChildCompiler{Command: []string{os.Args[0], arg}})
		_, err := e.Load(t.Context(), Source{Name: "a", Wasm: newBuilder().agent("", ok)})
		var fault *CompileError
		var refused *turn.LoadError
		if !errors.As(err, &fault) || errors.As(err, &refused) || fault.Name != "a" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
		left, err := os.ReadDir(e.cache.dir)
		if err != nil || len(left) != 1 || left[0].Name() == stagePrefix {
			t.Errorf("%s: the cache has %v, %v", arg, left, err)
		}
	}
}

func TestNoChildProgram(t *testing.T) {
	t.Parallel()
	err := ChildCompiler{}.withDefaults().run(t.Context(), t.TempDir(), nil)
	var fault *CompileError
	if !errors.As(err, &fault) {
		t.Errorf("without a command: %v", err)
	}
}

// TestCompilerStopped: a child that its caller stops is no fault of the module, one that takes too much time or memory is.
func TestCompilerStopped(t *testing.T) {
	t.Parallel()
	errEnd := errors.New("the turn ends")
	ended, end := context.WithCancelCause(t.Context())
	c := ChildCompiler{Command: []string{"/bin/sh", "-c", "exec sleep 3600"}, Memory: 1 << 40, Wall: 20 * time.Millisecond}.withDefaults()
	var fault *CompileError
	if err := c.run(t.Context(), t.TempDir(), nil); errors.As(err, &fault) || !strings.Contains(err.Error(), "took longer than 20ms") {
		t.Errorf("a module that takes too much time: %v", err)
	}
	c.Wall = time.Hour
	time.AfterFunc(20*time.Millisecond, func() { end(errEnd) })
	if err := c.run(ended, t.TempDir(), nil); !errors.As(err, &fault) || !errors.Is(err, errEnd) {
		t.Errorf("a turn that ends: %v", err)
	}
	if runtime.GOOS != "linux" {
		return // memory is watched nowhere else
	}
	c.Memory = 1
	if err := c.run(t.Context(), t.TempDir(), nil); errors.As(err, &fault) || !strings.Contains(err.Error(), "of memory") {
		t.Errorf("a module that needs too much memory: %v", err)
	}
}

// exited is how a process ends with a code.
func exited(t *testing.T, code string) *exec.ExitError {
	t.Helper()
	var exit *exec.ExitError
	if err := exec.Command("/bin/sh", "-c", "exit "+code).Run(); !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return exit
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	c := ChildCompiler{CPU: 10 * time.Second, Memory: 512 << 20}
	tests := []struct {
		code, said, want string
		ours             bool // not the module's
	}{
		{"3", "bad section", "bad section", false},
		{"4", "write x: no space left on device", "write x: no space left on device; the compile cache is dir", true},
		{"1", "limit this process: no", "limit this process: no", true},
		{"5", "", "more than 512 MiB of memory", false},
		{"2", "fatal error: runtime: out of memory\n\ngoroutine 1", "more than 512 MiB of memory", false},
		{"2", "SIGXCPU: cpu limit exceeded\n\ngoroutine 1", "more than 10s of computing time", false},
		{"2", "panic: oh\n\ngoroutine 1", "its compiler failed: panic: oh", false},
	}
	for _, tt := range tests {
		err := c.childError("dir", exited(t, tt.code), nil, tt.said)
		var fault *CompileError
		if errors.As(err, &fault) != tt.ours || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "goroutine") {
			t.Errorf("%s %q: %v", tt.code, tt.said, err)
		}
	}
}

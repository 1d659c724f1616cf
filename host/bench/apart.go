package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// apart is a server in a process of its own, so that clients and it meet as they
// would outside. It serves one goroutine.
type apart struct {
	url string
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
	// after, if set, clears up what the child has left.
	after func()
}

// startApart runs this program as a child that serves, see [child].
func startApart(ctx context.Context, args ...string) (*apart, error) {
	return startApartIn(ctx, nil, args...)
}

// startApartIn is startApart with more in the child's environment.
func startApartIn(ctx context.Context, env []string, args ...string) (*apart, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{childCommand}, args...)...)
	cmd.Stderr, cmd.Env = os.Stderr, append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a := &apart{in: in, out: bufio.NewReader(out), cmd: cmd}
	line, err := a.out.ReadString('\n')
	if a.url = strings.TrimSpace(line); !strings.HasPrefix(a.url, "http://") {
		a.stop()
		return nil, fmt.Errorf("start %s in a child: %q, %w", args[0], a.url, cmp.Or(err, errors.New("which is no address")))
	}
	return a, nil
}

// stop ends the child and waits for it.
func (a *apart) stop() {
	_ = a.in.Close()
	_, _ = io.Copy(io.Discard, a.out)
	_ = a.cmd.Wait()
	if a.after != nil {
		a.after()
	}
}

// memory is what the child has on its heap and its stacks, in bytes.
func (a *apart) memory() (n float64, err error) {
	if _, err := fmt.Fprintln(a.in, "memory"); err != nil {
		return 0, err
	}
	if _, err := fmt.Fscanln(a.out, &n); err != nil {
		return 0, fmt.Errorf("ask a child for its memory: %w", err)
	}
	return n, nil
}

// insides are what a child says of itself.
type insides struct {
	// Heap and Stacks are in use, Go is what its runtime has of the system, with
	// these, all in bytes.
	Heap, Stacks, Go float64
	Goroutines       int
}

// insides gives back what the child does not need, and looks into it.
func (a *apart) insides() (n insides, err error) {
	if _, err := fmt.Fprintln(a.in, askInsides); err != nil {
		return n, err
	}
	if _, err := fmt.Fscanln(a.out, &n.Heap, &n.Stacks, &n.Go, &n.Goroutines); err != nil {
		return n, fmt.Errorf("ask a child for its insides: %w", err)
	}
	return n, nil
}

// askInsides is what the parent asks a child; any other line asks for its memory.
const askInsides = "insides"

func tellInsides() {
	var m runtime.MemStats
	debug.FreeOSMemory()
	debug.FreeOSMemory() // pools give their last back in the second
	runtime.ReadMemStats(&m)
	fmt.Println(m.HeapAlloc, m.StackInuse, m.Sys-m.HeapReleased, runtime.NumGoroutine())
}

// serving is the child's end: it tells where it serves, and then its memory
// whenever the parent asks, until the parent closes in or is gone.
func serving(url string, in io.Reader) error {
	fmt.Println(url)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if lines.Text() == askInsides {
			tellInsides()
			continue
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // pools give their last back in the second
		runtime.ReadMemStats(&m)
		fmt.Println(m.HeapAlloc + m.StackInuse)
	}
	return nil
}

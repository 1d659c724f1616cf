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
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{childCommand}, args...)...)
	cmd.Stderr = os.Stderr
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

// serving is the child's end: it tells where it serves, and then its memory
// whenever the parent asks, until the parent closes in or is gone.
func serving(url string, in io.Reader) error {
	fmt.Println(url)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // pools give their last back in the second
		runtime.ReadMemStats(&m)
		fmt.Println(m.HeapAlloc + m.StackInuse)
	}
	return nil
}

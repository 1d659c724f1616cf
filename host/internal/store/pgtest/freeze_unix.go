//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Freeze stops the server and its children with SIGSTOP: the system still takes connections for it, and
// nothing answers. It skips the test where the system lists no children.
func (s *Server) Freeze(t testing.TB) {
	t.Helper()
	s.signalAll(t, syscall.SIGSTOP)
}

// Thaw lets a frozen server go on.
func (s *Server) Thaw(t testing.TB) {
	t.Helper()
	s.signalAll(t, syscall.SIGCONT)
}

// signalAll signals the server before its children: one that is stopped makes no more of them.
func (s *Server) signalAll(t testing.TB, signal syscall.Signal) {
	t.Helper()
	server, err := childrenOf(s.PID())
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the system lists no children of processes")
	}
	if err != nil || len(server) != 1 {
		t.Fatalf("the server's process: %v, %v", server, err)
	}
	if err := syscall.Kill(server[0], signal); err != nil {
		t.Fatal(err)
	}
	children, err := childrenOf(server[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range children {
		if err := syscall.Kill(pid, signal); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
	}
}

// childrenOf returns the children of a process (https://man7.org/linux/man-pages/man5/proc_pid_task.5.html).
func childrenOf(pid int) (children []int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return nil, err
	}
	for _, field := range strings.Fields(string(text)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return children, nil
}

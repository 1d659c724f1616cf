package subprocess

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// vigil is what a guard waits for besides the end of what it guards.
type vigil struct {
	self string // the program skep, which becomes what is guarded
	stop <-chan os.Signal
	gone <-chan struct{} // closed with the host
}

// keepVigil makes the guard the parent of orphans. It stays on the calling thread: a
// parent-death signal goes by the thread that started the child.
func keepVigil() (v vigil, err error) {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return v, fmt.Errorf("become the parent of orphans: %w", err)
	}
	stop, gone := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the host's end closes with the host
		close(gone)
	}()
	v = vigil{stop: stop, gone: gone}
	v.self, err = os.Executable()
	return v, err
}

package process

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// watchdog are the events a guard waits for, besides the end of its child.
type watchdog struct {
	executable string // path of skep
	stop       <-chan os.Signal
	hostGone   <-chan struct{} // closed with the host
}

// startWatchdog makes the guard the parent of orphans. It locks the calling thread: the
// parent-death signal depends on the thread that started the child.
func startWatchdog() (v watchdog, err error) {
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
	v = watchdog{stop: stop, hostGone: gone}
	v.executable, err = os.Executable()
	return v, err
}

package subprocess

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// programFD is where guard and process find the program.
const programFD = 3

// watchEvery is how often it is looked at what a process takes.
const watchEvery = 100 * time.Millisecond

// roomEvery is how many such looks come between two at its directory.
const roomEvery = 5

// maxTasks is how many processes and threads there may be: the kernel's own limit
// does not hold for root.
const maxTasks = 512

// guard starts the process and stays between it and the host. It ends when the
// process has, when the host asks, and when the host is gone; whatever the process
// has started ends with it. The code is the process's own where it ended by itself.
func guard(s spec) (code int, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(s.Dir)) }()
	v, err := keepVigil()
	if err != nil {
		return exitSetup, err
	}
	child, err := os.StartProcess(v.self, []string{v.self, Command, roleEnter, s.encode()}, enterAttr(s))
	if err != nil {
		return exitSetup, err
	}
	// Who kills must not wait behind what it kills. Only root may say so, and only
	// root's processes have no limit of the kernel's.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -10)
	ended := reap(child.Pid)
	code = oversee(s, ended, v.stop, v.gone)
	// Where the kernel filters calls, nobody has left the group, and all of it dies at
	// once. Elsewhere it is the first blow.
	_ = unix.Kill(-child.Pid, unix.SIGKILL)
	return code, killAll()
}

// enterAttr is how the process begins: in a group of its own, and nothing but the
// host's pipes and the program is open.
func enterAttr(s spec) *os.ProcAttr {
	null, err := os.Open(os.DevNull)
	if err != nil {
		null = nil // it begins without an input
	}
	return &os.ProcAttr{
		Dir: s.Dir, Env: os.Environ(),
		Files: []*os.File{null, os.Stdout, os.Stderr, os.NewFile(programFD, "program")},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
}

// oversee waits until there is a reason to end.
func oversee(s spec, ended <-chan int, stop <-chan os.Signal, gone <-chan struct{}) int {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for look := 0; ; {
		select {
		case code := <-ended:
			return code
		case <-stop:
			return 0
		case <-gone:
			return 0
		case <-tick.C:
			look++
			below := noticed()
			switch memory, threads := taken(below); {
			case s.Memory > 0 && memory > s.Memory:
				return exitMemory
			case threads > maxTasks:
				return exitTasks
			case s.Dir != "" && look%roomEvery == 0 && full(s.Dir, below):
				return exitRoom
			}
		}
	}
}

// reap waits for all children, orphans that were given to this process included,
// and tells how the first one ended.
func reap(first int) <-chan int {
	ended := make(chan int, 1)
	go func() {
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, 0, nil)
			switch {
			case errors.Is(err, unix.EINTR):
			case err != nil:
				return // nothing is left
			case pid == first && status.Signaled():
				ended <- 128 + int(status.Signal())
			case pid == first:
				ended <- status.ExitStatus()
			}
		}
	}()
	return ended
}

// killPatience bounds the killing: what cannot be killed is stuck in the kernel.
const killPatience = 4 * time.Second

// killAll kills what is below this process until there is nothing.
func killAll() error {
	end := time.Now().Add(killPatience)
	for {
		below := descendants()
		if len(below) == 0 {
			return nil
		}
		for _, pid := range below {
			_ = unix.Kill(pid, unix.SIGKILL) // it may be gone by now
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d processes cannot be killed", len(below))
		}
		time.Sleep(time.Millisecond)
	}
}

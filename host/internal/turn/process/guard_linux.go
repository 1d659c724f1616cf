package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// programFD is the descriptor of the program in guard and process.
const programFD = 3

// watchEvery is the interval between two checks of memory and threads.
const watchEvery = 100 * time.Millisecond

// quotaEvery is the number of these checks between two checks of the directory.
const quotaEvery = 5

// maxTasks bounds processes and threads. The kernel's own limit does not apply to root.
const maxTasks = 512

// guard starts the process and waits. It ends when the process ends, when the host asks,
// or when the host is gone; all descendants of the process end with it. The exit code is
// the process's own if it ended by itself.
func guard(s spec) (code int, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(s.Dir), removeCgroup(s.Cgroup)) }()
	v, err := startWatchdog()
	if err != nil {
		return exitSetup, err
	}
	child, err := os.StartProcess(v.executable, []string{v.executable, Command, roleEnter, s.encode()}, enterAttr(s))
	if err != nil {
		return exitSetup, err
	}
	// The guard must not be scheduled behind the processes that it kills. Only root may
	// raise the priority, and only root's processes have no kernel limit.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -10)
	ended := reapChildren(child.Pid)
	code = waitForEnd(s, ended, v.stop, v.hostGone)
	// With the seccomp filter no process has left the group, so one signal ends all.
	// Without the filter, killAll ends the rest.
	_ = unix.Kill(-child.Pid, unix.SIGKILL)
	return code, killAll()
}

// enterAttr are the attributes of the new process: its own group, and no open files but
// the host's pipes and the program.
func enterAttr(s spec) *os.ProcAttr {
	null, err := os.Open(os.DevNull)
	if err != nil {
		null = nil // it starts without an input
	}
	return &os.ProcAttr{
		Dir: s.Dir, Env: os.Environ(),
		Files: []*os.File{null, os.Stdout, os.Stderr, os.NewFile(programFD, "program")},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
}

// waitForEnd waits until there is a reason to end.
func waitForEnd(s spec, ended <-chan int, stop <-chan os.Signal, gone <-chan struct{}) int {
	// The first checks come soon: a program is not to serve before one was made.
	wait := time.Millisecond
	tick := time.NewTimer(wait)
	defer tick.Stop()
	for look := 0; ; {
		select {
		case code := <-ended:
			if exceededCgroup(s.Cgroup) {
				return exitMemory
			}
			return code
		case <-stop:
			return 0
		case <-gone:
			return 0
		case <-tick.C:
			look++
			wait = min(2*wait, watchEvery)
			tick.Reset(wait)
			below := listedDescendants()
			switch memory, threads := memoryAndThreads(below); {
			case s.Memory > 0 && memory > s.Memory:
				return exitMemory
			case threads > maxTasks:
				return exitTasks
			case s.Dir != "" && look%quotaEvery == 0 && overQuota(s.Dir, below):
				return exitQuota
			}
		}
	}
}

// reapChildren reaps all children, inherited orphans included, and sends the exit code of
// the first one.
func reapChildren(first int) <-chan int {
	ended := make(chan int, 1)
	go func() {
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, 0, nil)
			switch {
			case errors.Is(err, unix.EINTR):
			case err != nil:
				return // no children are left
			case pid == first && status.Signaled():
				ended <- 128 + int(status.Signal())
			case pid == first:
				ended <- status.ExitStatus()
			}
		}
	}()
	return ended
}

// killTimeout bounds the killing: a process that survives is stuck in the kernel.
const killTimeout = 4 * time.Second

// killAll kills all descendants until none is left.
func killAll() error {
	end := time.Now().Add(killTimeout)
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

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// waitAndKillOrphans waits for the end of a guard, and kills the processes of its session:
// a killed guard could not. Before the guard is reaped, its process id and session id are
// not reused, and no process of the session can leave it.
func waitAndKillOrphans(guard int) {
	var how unix.Siginfo
	err := unix.EINTR
	for err == unix.EINTR {
		err, _ = unix.Waitid(unix.P_PID, guard, &how, unix.WEXITED|unix.WNOWAIT, nil).(unix.Errno)
	}
	if err != 0 {
		return
	}
	for end := time.Now().Add(killTimeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		left := inSession(guard)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL) // it may be gone by now
		}
	}
}

// inSession lists the processes of a session, without its leader.
func inSession(leader int) (pids []int) {
	for _, pid := range processes() {
		if session, alive := sessionOf(pid); alive && session == leader && pid != leader {
			pids = append(pids, pid)
		}
	}
	return pids
}

// sessionOf returns a process's session; alive is false for a zombie or a missing process.
func sessionOf(pid int) (session int, alive bool) {
	_, session, alive = parentAndSession(pid)
	return session, alive
}

package subprocess

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// awaitEnd waits for a guard's end, and kills what it has left behind: a guard that
// was killed could not. Until the guard is waited for, its number is nobody else's,
// nor is that of its session, which no process of its leaves.
func awaitEnd(guard int) {
	var how unix.Siginfo
	err := unix.EINTR
	for err == unix.EINTR {
		err, _ = unix.Waitid(unix.P_PID, guard, &how, unix.WEXITED|unix.WNOWAIT, nil).(unix.Errno)
	}
	if err != 0 {
		return
	}
	for end := time.Now().Add(killPatience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		left := inSession(guard)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL) // it may be gone by now
		}
	}
}

// inSession lists the processes that run in a session, without its leader.
func inSession(leader int) (pids []int) {
	for _, pid := range processes() {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue
		}
		// Behind the name, which stands in brackets and may hold anything: state,
		// parent, group, session.
		fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
		if len(fields) > 3 && pid != leader && fields[0][0] != 'Z' && fields[0][0] != 'X' && string(fields[3]) == strconv.Itoa(leader) {
			pids = append(pids, pid)
		}
	}
	return pids
}

package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Confinement is one way in which processes are confined on this machine.
type Confinement struct {
	Name    string `json:"name"`
	InForce bool   `json:"in_force"`
	Detail  string `json:"detail"`
}

// Confinements lists what holds for the processes of a host with this user and this setting
// of [limits] process_cgroup.
func Confinements(cgroupSetting string) ([]Confinement, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	files := Confinement{"landlock", errno == 0, fmt.Sprintf("version %d restricts which files they open, 6 also signals and sockets without a path", version)}
	if errno != 0 {
		files.Detail = "the kernel does not restrict which files they open: " + errno.Error()
	}
	calls := Confinement{"seccomp", auditArch != 0, "system calls that no agent needs are refused"}
	if !calls.InForce {
		calls.Detail = "skep has no filter of system calls for this processor"
	}
	root := Confinement{"own root", mayMount(), "nothing but what they may read has a path"}
	if !root.InForce {
		root.Detail = "they see names, sizes and times of the user's files, and sockets with a path: the host lacks CAP_SYS_ADMIN"
	}
	group, why := OpenCgroup(cgroupSetting)
	memory := Confinement{"cgroup", why == nil, "the kernel limits memory and threads, in " + group.Dir()}
	if why != nil {
		memory.Detail = "memory and threads are counted ten times a second, and the kernel's own structures are not: " + why.Error()
	}
	return []Confinement{files, calls, root, memory}, group.Close()
}

// mayMount reports whether this process has CAP_SYS_ADMIN.
func mayMount() bool {
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

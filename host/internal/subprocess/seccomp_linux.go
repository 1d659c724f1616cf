package subprocess

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where a filter finds what it looks at, in the kernel's struct seccomp_data.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetFirst  = 16 // low half of the first argument
)

// newNamespaces are the flags of clone that make namespaces.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// refused are system calls that no agent needs and that reach beyond its process.
func refused() []uint32 {
	return append([]uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
		unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_FSCONFIG, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR,
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP,
		unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
		unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SYSLOG, unix.SYS_PERSONALITY,
		// What landlock does not look at: other processes of this user, and attributes
		// of every file that is his.
		unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
		unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
		// Memory that no process has, so that nobody would count it; some of it stays
		// behind, and two tenants could meet in it.
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
		unix.SYS_MSGGET, unix.SYS_MSGCTL, unix.SYS_MSGSND, unix.SYS_MSGRCV,
	}, refusedHere()...)
}

// pretended are system calls that do nothing and say that all is well. Programs
// make them in good faith, where it does not matter; elsewhere they would reach
// every file of this user, or leave the group, in which all die at once, however
// fast they start others.
func pretended() []uint32 {
	return append([]uint32{
		unix.SYS_SETSID, unix.SYS_SETPGID,
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	}, pretendedHere()...)
}

// onlySelf are system calls that take the number of a process, and are for the one
// that calls alone, which is 0.
func onlySelf() []uint32 {
	return []uint32{unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR}
}

func statement(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

// jump goes on by yes or no instructions behind the next.
func jump(test uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k}
}

func load(offset uint32) unix.SockFilter {
	return statement(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset)
}

func answer(verdict uint32, errno unix.Errno) unix.SockFilter {
	return statement(unix.BPF_RET|unix.BPF_K, verdict|uint32(errno))
}

// filter is the program that the kernel runs before every system call.
func filter() []unix.SockFilter {
	program := []unix.SockFilter{
		load(offsetArch),
		jump(unix.BPF_JEQ, auditArch, 1, 0),
		answer(unix.SECCOMP_RET_KILL_PROCESS, 0),
		load(offsetNumber),
		// Numbers of another calling convention would slip through below.
		jump(unix.BPF_JGE, 0x40000000, 0, 1),
		answer(unix.SECCOMP_RET_ERRNO, unix.EPERM),
	}
	for _, number := range refused() {
		program = append(program, jump(unix.BPF_JEQ, number, 0, 1), answer(unix.SECCOMP_RET_ERRNO, unix.EPERM))
	}
	for _, number := range pretended() {
		program = append(program, jump(unix.BPF_JEQ, number, 0, 1), answer(unix.SECCOMP_RET_ERRNO, 0))
	}
	for _, number := range onlySelf() {
		program = append(program, jump(unix.BPF_JEQ, number, 0, 4), load(offsetFirst),
			jump(unix.BPF_JEQ, 0, 0, 1), answer(unix.SECCOMP_RET_ALLOW, 0), answer(unix.SECCOMP_RET_ERRNO, unix.EPERM))
	}
	return append(program,
		// Its flags lie in memory, where no filter can look; callers then take clone.
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1),
		answer(unix.SECCOMP_RET_ERRNO, unix.ENOSYS),
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 3),
		load(offsetFirst),
		jump(unix.BPF_JSET, newNamespaces, 0, 4),
		answer(unix.SECCOMP_RET_ERRNO, unix.EPERM),
		// The network is the host's: an agent asks for http.fetch.
		jump(unix.BPF_JEQ, unix.SYS_SOCKET, 0, 2),
		load(offsetFirst),
		jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 1),
		answer(unix.SECCOMP_RET_ALLOW, 0),
		answer(unix.SECCOMP_RET_ERRNO, unix.EACCES),
	)
}

// filterCalls refuses what filter refuses, as far as the kernel can. The thread has
// given up new privileges.
func filterCalls() error {
	if auditArch == 0 {
		return nil
	}
	program := filter()
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 && !errors.Is(errno, unix.ENOSYS) {
		return errno
	}
	return nil
}

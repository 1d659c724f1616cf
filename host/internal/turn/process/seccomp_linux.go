package process

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in the kernel's struct seccomp_data, see seccomp(2).
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetFirst  = 16 // lower half of the first argument
	offsetSecond = offsetFirst + 8
	offsetThird  = offsetFirst + 16
	offsetFourth = offsetFirst + 24
)

// newNamespaces are the flags of clone that create namespaces.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// deniedCalls are system calls that no agent needs and that reach beyond its process.
func deniedCalls() []uint32 {
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
		// Landlock does not cover these: names and changes of files that the process may not
		// read.
		unix.SYS_INOTIFY_INIT1, unix.SYS_INOTIFY_ADD_WATCH, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT,
		// Landlock does not cover these: other processes of this user, and extended
		// attributes of all files of this user.
		unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
		unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
		// These create memory that belongs to no process, so that no limit counts it. Some
		// of it outlives the process, and two tenants could share it.
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
		unix.SYS_MSGGET, unix.SYS_MSGCTL, unix.SYS_MSGSND, unix.SYS_MSGRCV,
		// A pipe that was given a page keeps it, and the huge page around it, when the
		// process has let go of both.
		unix.SYS_VMSPLICE,
	}, deniedCallsArch()...)
}

// ignoredCalls are system calls that do nothing and report success. Programs make them
// without need. Executed, they could change every file of this user, or leave the process
// group, through which all processes are killed at once.
func ignoredCalls() []uint32 {
	return append([]uint32{
		unix.SYS_SETSID, unix.SYS_SETPGID,
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	}, ignoredCallsArch()...)
}

// selfOnlyCalls are system calls with a process id argument. Only 0, the caller itself, is
// allowed.
func selfOnlyCalls() []uint32 {
	return []uint32{unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR}
}

// deniedFcntls are commands of fcntl that change what others can do with a file, that watch
// a directory, or that enlarge a pipe, which no limit counts.
func deniedFcntls() []uint32 {
	return []uint32{unix.F_SETLEASE, unix.F_NOTIFY, unix.F_SETPIPE_SZ}
}

// ignoredOptions are options of sockets that do nothing and report success: with larger
// buffers the kernel would keep more for a process than it does for any other.
func ignoredOptions() []uint32 {
	return []uint32{unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE}
}

// refuseArgument answers a call that has one of the values as its argument. It begins and
// ends with the number of the call loaded.
func refuseArgument(number, offset uint32, values []uint32, errno unix.Errno) (program []unix.SockFilter) {
	for _, value := range values {
		program = append(program, jump(unix.BPF_JEQ, number, 0, 4), load(offset),
			jump(unix.BPF_JEQ, value, 0, 1), returnVerdict(unix.SECCOMP_RET_ERRNO, errno), load(offsetNumber))
	}
	return program
}

func statement(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

// jump skips yes or no instructions after the next one.
func jump(test uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k}
}

func load(offset uint32) unix.SockFilter {
	return statement(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset)
}

func returnVerdict(verdict uint32, errno unix.Errno) unix.SockFilter {
	return statement(unix.BPF_RET|unix.BPF_K, verdict|uint32(errno))
}

// filter is the BPF program that the kernel runs before each system call.
func filter() []unix.SockFilter {
	program := []unix.SockFilter{
		load(offsetArch),
		jump(unix.BPF_JEQ, auditArch, 1, 0),
		returnVerdict(unix.SECCOMP_RET_KILL_PROCESS, 0),
		load(offsetNumber),
		// Numbers of the x32 calling convention would not match below.
		jump(unix.BPF_JGE, 0x40000000, 0, 1),
		returnVerdict(unix.SECCOMP_RET_ERRNO, unix.EPERM),
	}
	for _, number := range deniedCalls() {
		program = append(program, jump(unix.BPF_JEQ, number, 0, 1), returnVerdict(unix.SECCOMP_RET_ERRNO, unix.EPERM))
	}
	for _, number := range ignoredCalls() {
		program = append(program, jump(unix.BPF_JEQ, number, 0, 1), returnVerdict(unix.SECCOMP_RET_ERRNO, 0))
	}
	for _, number := range selfOnlyCalls() {
		program = append(program, jump(unix.BPF_JEQ, number, 0, 4), load(offsetFirst),
			jump(unix.BPF_JEQ, 0, 0, 1), returnVerdict(unix.SECCOMP_RET_ALLOW, 0), returnVerdict(unix.SECCOMP_RET_ERRNO, unix.EPERM))
	}
	program = append(program, refuseArgument(unix.SYS_FCNTL, offsetSecond, deniedFcntls(), unix.EPERM)...)
	program = append(program, refuseArgument(unix.SYS_SETSOCKOPT, offsetThird, ignoredOptions(), 0)...)
	return append(program,
		// The flags of clone3 are in memory, which no filter can read; callers fall back
		// to clone.
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1),
		returnVerdict(unix.SECCOMP_RET_ERRNO, unix.ENOSYS),
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 3),
		load(offsetFirst),
		jump(unix.BPF_JSET, newNamespaces, 0, 10),
		returnVerdict(unix.SECCOMP_RET_ERRNO, unix.EPERM),
		// Shared memory without a file stays when its pages are given back, and no process
		// shows it then.
		jump(unix.BPF_JEQ, unix.SYS_MMAP, 0, 4),
		load(offsetFourth),
		statement(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, unix.MAP_SHARED|unix.MAP_ANONYMOUS),
		jump(unix.BPF_JEQ, unix.MAP_SHARED|unix.MAP_ANONYMOUS, 0, 5),
		returnVerdict(unix.SECCOMP_RET_ERRNO, unix.EPERM),
		// The network belongs to the host: an agent uses http.fetch.
		jump(unix.BPF_JEQ, unix.SYS_SOCKET, 1, 0),
		jump(unix.BPF_JEQ, unix.SYS_SOCKETPAIR, 0, 2),
		load(offsetFirst),
		jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 1),
		returnVerdict(unix.SECCOMP_RET_ALLOW, 0),
		returnVerdict(unix.SECCOMP_RET_ERRNO, unix.EACCES),
	)
}

// filterCalls installs the filter, as far as the kernel supports it. The thread has set
// no_new_privs.
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

package process

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// confineAndExec confines this process and becomes the program. It returns only an error.
// All settings apply to the thread that executes the program.
func confineAndExec(s spec) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the guard: %w", err)
	}
	if os.Getppid() == 1 {
		return errors.New("the guard is gone")
	}
	program, loader := os.NewFile(programFD, "program"), s.Interpreter
	defer runtime.KeepAlive(program) // its finalizer would close it
	if loader == "" {
		loader = loaderOf(program)
	}
	_, missing := os.Stat(loader)
	steps := []struct {
		what string
		do   func(spec) error
	}{
		{"join its control group", joinCgroup},
		{"limit resources", limitResources},
		{"have a root of its own", enterOwnRoot},
		{"give up capabilities", func(spec) error { return dropCapabilities() }},
		{"give up new privileges", func(spec) error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		{"restrict files", restrictFiles},
		{"filter system calls", func(spec) error { return filterCalls() }},
	}
	for _, step := range steps {
		if err := step.do(s); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	if s.Interpreter == "" { // an interpreter reopens the program
		unix.CloseOnExec(programFD)
	}
	err := unix.Exec("/proc/self/fd/"+strconv.Itoa(programFD), []string{s.Name}, os.Environ())
	if errors.Is(err, unix.ENOENT) && missing == nil {
		err = unix.EACCES // its own root does not have the loader
	}
	return &execError{err}
}

// loaderOf is the path of a program's loader; empty for none.
func loaderOf(program io.ReaderAt) string {
	f, err := elf.NewFile(program)
	if err != nil {
		return ""
	}
	for _, part := range f.Progs {
		path := make([]byte, min(part.Filesz, unix.PathMax))
		if part.Type == elf.PT_INTERP {
			n, _ := part.ReadAt(path, 0) // a path that is cut leads nowhere
			return strings.TrimRight(string(path[:n]), "\x00")
		}
	}
	return ""
}

// execError is the kernel's error for the execution.
type execError struct{ error }

func (e *execError) Unwrap() error { return e.error }

// Limits that no operator needs to raise.
const (
	maxFiles   = 256       // open at once
	maxFile    = 256 << 20 // bytes of one file
	spareTasks = 256       // processes and threads, beyond the user's present ones
	spareData  = 512 << 20 // bytes that a runtime maps and does not use
)

func limitResources(s spec) error {
	limits := []struct {
		kind int
		most uint64
	}{
		{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, maxFiles}, {unix.RLIMIT_FSIZE, maxFile},
		{unix.RLIMIT_NPROC, userThreads() + spareTasks},
		// The guard measures the memory in use. The address space is no measure: a runtime
		// reserves far more.
		{unix.RLIMIT_DATA, uint64(2*s.Memory) + spareData},
	}
	for _, l := range limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.kind, &now); err != nil {
			return err
		}
		most := min(l.most, now.Max)
		if err := unix.Setrlimit(l.kind, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	return nil
}

// lockedSecureBits makes a root process like any other: the user id gives no capabilities,
// and the bits are locked. See capabilities(7).
const lockedSecureBits = secbitNoRoot | secbitNoRoot<<1 | secbitNoAmbient | secbitNoAmbient<<1 // each with its lock

// From linux/securebits.h.
const (
	secbitNoRoot    = 1 << 0
	secbitNoAmbient = 1 << 6
)

// dropCapabilities drops all capabilities. A process without any need not.
func dropCapabilities() error {
	err := unix.Prctl(unix.PR_SET_SECUREBITS, lockedSecureBits, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	for c := uintptr(0); err == nil && c <= unix.CAP_LAST_CAP; c++ {
		if drop := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); drop != nil && !errors.Is(drop, unix.EINVAL) {
			return drop
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// systemDirs and systemFiles are what programs and interpreters need to start. They
// contain no secrets.
var (
	systemDirs  = [...]string{"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc/alternatives", "/etc/ld.so.conf.d", "/sys/kernel/mm"}
	systemFiles = [...]string{"/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/hosts"}
	devices     = [...]string{"/dev/null", "/dev/full", "/dev/random", "/dev/urandom"}
	// A writable mapping of this device is shared memory that no process shows.
	readOnlyDevices = [...]string{"/dev/zero"}
)

// restrictFiles limits the process to its directory, the configured files, and the
// system's programs and libraries, as far as the kernel supports it. Newer kernels also
// deny the network and signals to other processes. See landlock(7).
func restrictFiles(s spec) error {
	rules := []landlock.Rule{
		landlock.RWDirs(s.Dir),
		landlock.RODirs(systemDirs[:]...).IgnoreIfMissing(),
		landlock.ROFiles(systemFiles[:]...).IgnoreIfMissing(),
		landlock.RWFiles(devices[:]...).IgnoreIfMissing(),
		landlock.ROFiles(readOnlyDevices[:]...).IgnoreIfMissing(),
	}
	for _, path := range s.Read {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return err
		case info.IsDir():
			rules = append(rules, landlock.RODirs(path))
		default:
			rules = append(rules, landlock.ROFiles(path))
		}
	}
	return landlock.V6.BestEffort().Restrict(rules...)
}

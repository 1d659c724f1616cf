package subprocess

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// enter confines this process and becomes the program. It returns only an error.
// What is set here belongs to the thread that executes the program.
func enter(s spec) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the guard: %w", err)
	}
	if os.Getppid() == 1 {
		return errors.New("the guard is gone")
	}
	steps := []struct {
		what string
		do   func(spec) error
	}{
		{"limit resources", limitResources},
		{"hide services", hideServices},
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
	if s.Interpreter == "" { // an interpreter opens the program again
		unix.CloseOnExec(programFD)
	}
	return &execError{unix.Exec("/proc/self/fd/"+strconv.Itoa(programFD), []string{s.Name}, os.Environ())}
}

// execError is the kernel's refusal to run the program.
type execError struct{ error }

func (e *execError) Unwrap() error { return e.error }

// Limits that no operator needs to raise.
const (
	maxFiles   = 256       // that are open
	maxFile    = 256 << 20 // bytes of one
	spareTasks = 256       // processes and threads beside those the user has now
	spareData  = 512 << 20 // what a runtime maps and does not use
)

func limitResources(s spec) error {
	limits := []struct {
		kind int
		most uint64
	}{
		{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, maxFiles}, {unix.RLIMIT_FSIZE, maxFile},
		{unix.RLIMIT_NPROC, threads() + spareTasks},
		// The guard looks at what is really used; never the address space, of which
		// a runtime reserves far more.
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

// noRoot makes a process of root's like any other: no capabilities come with the
// user, and that cannot be changed any more.
const noRoot = secbitNoRoot | secbitNoRoot<<1 | secbitNoAmbient | secbitNoAmbient<<1 // each with its lock

// From linux/securebits.h.
const (
	secbitNoRoot    = 1 << 0
	secbitNoAmbient = 1 << 6
)

// dropCapabilities gives up all capabilities. Who has none needs not to.
func dropCapabilities() error {
	err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0)
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

// systemDirs and systemFiles are what programs and interpreters need to start.
// Nothing there is secret.
var (
	systemDirs  = [...]string{"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc/alternatives", "/etc/ld.so.conf.d", "/sys/kernel/mm"}
	systemFiles = [...]string{"/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/hosts"}
	devices     = [...]string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
)

// restrictFiles lets the process see its own directory, what its operator adds,
// and the system's programs and libraries, as far as the kernel can hold it to
// that. Where the kernel can, it takes the network and signals to others away too.
func restrictFiles(s spec) error {
	rules := []landlock.Rule{
		landlock.RWDirs(s.Dir),
		landlock.RODirs(systemDirs[:]...).IgnoreIfMissing(),
		landlock.ROFiles(systemFiles[:]...).IgnoreIfMissing(),
		landlock.RWFiles(devices[:]...).IgnoreIfMissing(),
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

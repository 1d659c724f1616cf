//go:build unix

package hosttest

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// WallClock is the wall clock of a [Process], apart from the system's: what time.Now says in all of the
// program. Durations go on as they are, as when a system's clock is set.
type WallClock struct {
	t    *testing.T
	file *os.File
}

// wallClockEnv names the file of a [WallClock] to the program.
const wallClockEnv = "SKEP_TEST_WALL_CLOCK"

// Files of package time in a program with a [WallClock]: it maps the file into its memory.
const (
	wallClockCall = "\tsec, nsec, mono := runtimeNow()\n"
	wallClockFile = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// ahead is how many seconds the wall clock is ahead of the system's.
var ahead = mapAhead()

func mapAhead() *atomic.Int64 {
	name, _ := syscall.Getenv("` + wallClockEnv + `")
	if name == "" {
		return new(atomic.Int64)
	}
	file, err := syscall.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		panic(name + ": " + err.Error())
	}
	raw, err := syscall.Mmap(file, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(name + ": " + err.Error())
	}
	return (*atomic.Int64)(unsafe.Pointer(&raw[0]))
}
`
)

// WallClockProgram builds the program with another package time, in which time.Now goes by a [WallClock].
func WallClockProgram(t *testing.T) (path string) {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text := ReadText(t, filepath.Join(source, "time.go"))
	if strings.Count(text, wallClockCall) != 1 {
		t.Fatalf("package time of %s does not read the clock by %q: change wallClockCall", runtime.Version(), wallClockCall)
	}
	return ProgramFrom(t, map[string]string{
		filepath.Join(source, "time.go"):       strings.Replace(text, wallClockCall, wallClockCall+"\tsec += ahead.Load()\n", 1),
		filepath.Join(source, "wall_clock.go"): wallClockFile,
	})
}

// NewWallClock gives a process that has not been started a wall clock. Its program must be a
// [WallClockProgram].
func NewWallClock(t *testing.T, p *Process) *WallClock {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "clock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	p.Env = append(p.Env, wallClockEnv+"="+file.Name())
	c := &WallClock{t, file}
	c.Set(0)
	return c
}

// Set sets the clock ahead of the system's, to the second, also while the process runs.
func (c *WallClock) Set(ahead time.Duration) {
	c.t.Helper()
	if _, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(ahead/time.Second))), 0); err != nil {
		c.t.Fatal(err)
	}
}

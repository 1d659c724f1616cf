package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Files of a control group, see cgroup-v2 in the kernel's administration guide.
const (
	cgroupMount       = "/sys/fs/cgroup"
	cgroupProcs       = "cgroup.procs"
	cgroupControl     = "cgroup.subtree_control"
	cgroupControllers = "+memory +pids"
)

// cgroupSpare is memory beyond limits.memory, in bytes: the kernel's structures and cached
// pages of files, which the limit does not count and a control group does.
const cgroupSpare = 64 << 20

// Cgroup is a control group in which each process gets one of its own. The zero value is
// none.
type Cgroup struct {
	dir   string
	leave func() error
}

// OpenCgroup prepares the control group of the setting [limits] process_cgroup: a path;
// "off" for none; empty for the host's own, into which the host then makes one for itself,
// because a group that limits others may not hold processes. The error is why there is
// none.
func OpenCgroup(setting string) (*Cgroup, error) {
	switch {
	case setting == "off":
		return &Cgroup{}, errors.New("process_cgroup is off")
	case setting != "":
		return openCgroup(setting, false)
	}
	var kind unix.Statfs_t
	if err := unix.Statfs(cgroupMount, &kind); err != nil || kind.Type != unix.CGROUP2_SUPER_MAGIC {
		return &Cgroup{}, errors.New("this machine has no cgroup v2 at " + cgroupMount)
	}
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return &Cgroup{}, err
	}
	for line := range strings.Lines(string(raw)) {
		if own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return openCgroup(filepath.Join(cgroupMount, own), true)
		}
	}
	return &Cgroup{}, errors.New("this process is in no cgroup v2")
}

// openCgroup prepares a directory. isOwn is set if this process is in it.
func openCgroup(dir string, isOwn bool) (*Cgroup, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return &Cgroup{}, err
	}
	for _, needed := range []string{"memory", "pids"} {
		if !slices.Contains(strings.Fields(string(raw)), needed) {
			return &Cgroup{}, fmt.Errorf("%s may not limit %s", dir, needed)
		}
	}
	c := &Cgroup{dir: dir, leave: func() error { return nil }}
	if isOwn {
		if err := c.moveHost(); err != nil {
			return &Cgroup{}, errors.Join(err, c.leave())
		}
	}
	if err := writeCgroup(dir, cgroupControl, cgroupControllers); err != nil {
		return &Cgroup{}, errors.Join(err, c.leave())
	}
	return c, nil
}

// moveHost moves this process into a group below.
func (c *Cgroup) moveHost() error {
	own := filepath.Join(c.dir, "skep-host-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(own, 0o755); err != nil {
		return err
	}
	c.leave = func() error {
		_ = writeCgroup(c.dir, cgroupControl, strings.ReplaceAll(cgroupControllers, "+", "-")) // others may need them
		_ = writeCgroup(c.dir, cgroupProcs, strconv.Itoa(os.Getpid()))
		_ = os.Remove(own) // it stays where this process cannot leave it
		return nil
	}
	return writeCgroup(own, cgroupProcs, strconv.Itoa(os.Getpid()))
}

// Dir is the directory of the group; empty for none.
func (c *Cgroup) Dir() string { return c.dir }

// Close moves the host back. No process runs any more.
func (c *Cgroup) Close() error {
	if c.dir == "" {
		return nil
	}
	return c.leave()
}

// newCgroup makes the group of one process, with its limits.
func newCgroup(dir string, memory int64) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	limits := [][2]string{{"pids.max", strconv.Itoa(maxTasks)}}
	if memory > 0 {
		limits = append(limits, [2]string{"memory.max", strconv.FormatInt(memory+cgroupSpare, 10)})
	}
	for _, l := range limits {
		if err := writeCgroup(dir, l[0], l[1]); err != nil {
			return errors.Join(err, removeCgroup(dir))
		}
	}
	// Without a swap, or on older kernels, these files are missing.
	_, _ = writeCgroup(dir, "memory.swap.max", "0"), writeCgroup(dir, "memory.oom.group", "1")
	return nil
}

// joinCgroup moves this process into its group.
func joinCgroup(s spec) error {
	if s.Cgroup == "" {
		return nil
	}
	return writeCgroup(s.Cgroup, cgroupProcs, strconv.Itoa(os.Getpid()))
}

// removeCgroup removes the group of a process that has ended; "" is none.
func removeCgroup(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.Remove(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// exceededCgroup reports whether the kernel has killed a process of a group for its memory.
func exceededCgroup(dir string) bool {
	if dir == "" {
		return false
	}
	raw, err := os.ReadFile(filepath.Join(dir, "memory.events"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(raw)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(n) != "0"
		}
	}
	return false
}

func writeCgroup(dir, file, value string) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(value), 0o600)
}

package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Limits of what a process may keep in its directory.
const (
	maxStored  = 1 << 30 // bytes
	maxEntries = 10_000  // files and directories
)

// overQuota reports whether a process exceeds the limits of its directory. A removed file
// counts while one of its processes has it open.
func overQuota(dir string, pids []int) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false // the process is ending
	}
	device := info.Sys().(*syscall.Stat_t).Dev // always so on Linux
	entries, stored := 0, removedBytes(device, pids)
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { // a partial walk counts
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			stored += diskSize(info)
		}
		if entries++; entries > maxEntries || stored > maxStored {
			return fs.SkipAll
		}
		return nil
	})
	return entries > maxEntries || stored > maxStored
}

// removedBytes is the size of removed files of a device that processes have open.
func removedBytes(device uint64, pids []int) (stored int64) {
	seen := map[uint64]bool{}
	for _, pid := range pids {
		open, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
		if err != nil {
			continue
		}
		for _, name := range open {
			info, err := os.Stat(name)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			if at := info.Sys().(*syscall.Stat_t); at.Nlink == 0 && at.Dev == device && !seen[at.Ino] {
				seen[at.Ino] = true
				stored += diskSize(info)
			}
		}
	}
	return stored
}

// diskSize is the size of a file on disk, in bytes.
func diskSize(info fs.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks * 512 }

package subprocess

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// What a process may keep in its directory.
const (
	maxStored  = 1 << 30 // bytes
	maxEntries = 10_000  // files and directories
)

// full reports whether a process keeps more in its directory than it may. A file
// that was removed counts while one of its processes has it open.
func full(dir string, pids []int) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false // it ends
	}
	device := info.Sys().(*syscall.Stat_t).Dev // so it is on Linux
	entries, stored := 0, openRemoved(device, pids)
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { // what can be read counts
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			stored += size(info)
		}
		if entries++; entries > maxEntries || stored > maxStored {
			return fs.SkipAll
		}
		return nil
	})
	return entries > maxEntries || stored > maxStored
}

// openRemoved is what removed files of a file system take, in bytes, that processes
// have open.
func openRemoved(device uint64, pids []int) (stored int64) {
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
				stored += size(info)
			}
		}
	}
	return stored
}

// size is what a file takes on disk, in bytes.
func size(info fs.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks * 512 }

//go:build unix

package server

import (
	"math"

	"golang.org/x/sys/unix"
)

// maxOpenFiles returns how many descriptors the process may have.
func maxOpenFiles() uint64 {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return math.MaxUint64
	}
	return files.Cur
}

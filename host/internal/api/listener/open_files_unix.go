//go:build unix

package listener

import (
	"math"

	"golang.org/x/sys/unix"
)

// MaxOpenFiles returns how many descriptors the process may have.
func MaxOpenFiles() uint64 {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return math.MaxUint64
	}
	return files.Cur
}

//go:build unix

package pathcheck

import (
	"io/fs"
	"os"
	"syscall"
)

// enforced: the system has owners and modes.
const enforced = true

// openFlags open a file at once, also one that would make the reader wait.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOFOLLOW

func current() user { return user(os.Geteuid()) }

func ownerOf(info fs.FileInfo) (owner, group int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return -1, -1
}

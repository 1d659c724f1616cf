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

func lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }

func current() user { return user(os.Geteuid()) }

// Grants reports whether a mode gives one of these rights.
func Grants(mode, rights fs.FileMode) bool { return mode&rights != 0 }

// Own reports whether a file belongs to this process's user.
func Own(info fs.FileInfo) bool {
	owner, _ := ownerOf(info)
	return owner == os.Geteuid()
}

func ownerOf(info fs.FileInfo) (owner, group int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return -1, -1
}

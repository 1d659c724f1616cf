package durabletest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func (d *Disk) want(t *testing.T, root string) error {
	t.Helper()
	return filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		dir, err := os.Stat(filepath.Dir(path))
		if err != nil {
			return err
		}
		if d.names[place{inode(dir), info.Name()}] != inode(info) {
			t.Errorf("the name %s may be lost: its directory was not synced after it", path)
		}
		if info.Mode().IsRegular() && (!d.whole(info) || d.early[inode(info)]) {
			t.Errorf("the content of %s may be lost: it was not synced before its name", path)
		}
		return nil
	})
}

// whole reports whether the content of a file was synced when it had the size that it has.
func (d *Disk) whole(info os.FileInfo) bool {
	size, ok := d.sizes[inode(info)]
	return ok && size == info.Size()
}

func inode(info os.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// note notes that a file or directory is synced now.
func (d *Disk) note(fd uint64) error {
	link := fmt.Sprintf("/proc/self/fd/%d", fd)
	path, err := os.Readlink(link)
	if err != nil {
		return err
	}
	info, err := os.Stat(link)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		d.sizes[inode(info)] = info.Size()
		return nil
	}
	list, err := os.ReadDir(path)
	for _, e := range list {
		at := place{inode(info), e.Name()}
		if info, err := e.Info(); err == nil && d.names[at] != inode(info) {
			d.names[at] = inode(info)
			d.order = append(d.order, e.Name())
			d.early[inode(info)] = !d.whole(info)
		}
	}
	return err
}

// Trace calls do on a thread whose syncs stop until they are noted
// (https://man7.org/linux/man-pages/man2/seccomp_unotify.2.html). It skips the test where
// the kernel does not offer that.
func Trace(t *testing.T, do func() error) *Disk {
	t.Helper()
	d := &Disk{sizes: map[uint64]int64{}, names: map[place]uint64{}, early: map[uint64]bool{}}
	var stop [2]int
	if err := unix.Pipe2(stop[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(stop[0])
	listeners, failures, done := make(chan int, 1), make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with its filter
		fd, err := listenToSyncs()
		if err != nil {
			failures <- err
			return
		}
		listeners <- fd
		done <- do()
		unix.Close(stop[1])
	}()
	select {
	case err := <-failures:
		unix.Close(stop[1])
		t.Skip("the kernel does not show the syncs of a thread: ", err)
	case listener := <-listeners:
		defer unix.Close(listener)
		if err := d.noteSyncs(listener, stop[0]); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	return d
}

// listenToSyncs makes a descriptor that gets the syncs of the calling thread.
func listenToSyncs() (int, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	equal := func(number uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: skip, K: number}
	}
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		equal(unix.SYS_FSYNC, 2), equal(unix.SYS_FDATASYNC, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// noteSyncs notes syncs and lets them go on, until the other end of stop is closed.
func (d *Disk) noteSyncs(listener, stop int) error {
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}, {Fd: int32(stop), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			if ready[1].Revents != 0 {
				return nil
			}
			continue
		}
		if err := d.noteSync(listener); err != nil {
			return err
		}
	}
}

// noteSync notes one sync. A call that a signal has interrupted is gone, and comes again.
func (d *Disk) noteSync(listener int) error {
	var request [80]byte // struct seccomp_notif: the id, and at 32 the first argument
	if err := control(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, request[:]); err != nil {
		return err
	}
	err := d.note(binary.NativeEndian.Uint64(request[32:]))
	var answer [24]byte // struct seccomp_notif_resp
	copy(answer[:8], request[:8])
	binary.NativeEndian.PutUint32(answer[20:], unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE)
	return errors.Join(err, control(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, answer[:]))
}

func control(fd int, request uintptr, data []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&data[0])))
	if errno != 0 && errno != unix.ENOENT && errno != unix.EINTR {
		return errno
	}
	return nil
}

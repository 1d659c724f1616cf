package process_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"skep/host/internal/turn"
	"skep/host/internal/turn/process"
)

func init() {
	if os.Args[0] == headless {
		runtime.LockOSThread() // the main goroutine stays on the main thread
	}
}

// headless is the name of a program whose main thread ends before the others.
const headless = "headless"

// endMainThread ends the thread of the main goroutine alone.
func endMainThread() {
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // it does not return
}

// hoarded is what the attacks below try to keep, in bytes; four times their limit.
const hoarded = 512 << 20

// hoard keeps memory that is not in the resident pages of its process.
func hoard(how string) error {
	switch how {
	case "shared":
		return hoardShared(-1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	case "zero device":
		fd, err := unix.Open("/dev/zero", unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		return hoardShared(fd, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	case "page tables":
		return hoardTables()
	case "connections":
		return hoardConnections()
	case "gifts":
		return hoardGifts()
	}
	return errors.New("no such hoard")
}

// hoardShared fills shared memory, and gives its pages back while the memory stays.
func hoardShared(fd, prot, flags int) error {
	const piece = 16 << 20
	all, err := unix.Mmap(fd, 0, hoarded, prot, flags)
	if err != nil {
		return err
	}
	for at := 0; at < len(all); at += piece {
		part := all[at : at+piece]
		for i := 0; i < len(part); i += 4096 {
			part[i] = 1
		}
		if err := unix.Madvise(part, unix.MADV_DONTNEED); err != nil {
			return err
		}
	}
	return nil
}

// hoardTables reads one byte of each range that has a page table of its own.
func hoardTables() error {
	const covered = 2 << 20 // by one page of a table, of 4 KiB
	all, err := unix.Mmap(-1, 0, hoarded/4096*covered, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	if err := unix.Madvise(all, unix.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	sum := byte(0)
	for i := 0; i < len(all); i += covered {
		sum += all[i]
	}
	if sum != 0 {
		return errors.New("the pages are not zero")
	}
	return nil
}

// hoardConnections fills connections that are never accepted, and closes its ends.
func hoardConnections() error {
	piece, listeners := make([]byte, 128<<10), []net.Listener{}
	for kept := 0; kept < hoarded; kept += len(piece) {
		if kept%(8<<20) == 0 {
			l, err := net.Listen("unix", fmt.Sprint("hoard-", kept))
			if err != nil {
				return err
			}
			listeners = append(listeners, l)
		}
		conn, err := net.Dial("unix", listeners[len(listeners)-1].Addr().String())
		if err != nil {
			return err
		}
		if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if _, err := conn.Write(piece); err != nil {
			return err
		}
		_ = conn.Close()
	}
	return nil
}

// hoardGifts gives one small page of each huge one to a pipe, which keeps all of it, and
// gives the huge one back.
func hoardGifts() error {
	const huge, perPipe = 2 << 20, 16
	all, err := unix.Mmap(-1, 0, 2*huge, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	if err := unix.Madvise(all, unix.MADV_HUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	page := all[-uintptr(unsafe.Pointer(&all[0]))%huge:][:huge]
	for kept := 0; kept < hoarded; kept += perPipe * huge {
		var pipe [2]int
		if err := unix.Pipe2(pipe[:], unix.O_NONBLOCK); err != nil {
			return err
		}
		for range perPipe {
			page[0] = 1
			part := unix.Iovec{Base: &page[0], Len: 4096}
			if _, err := unix.Vmsplice(pipe[1], []unix.Iovec{part}, 0); err != nil {
				return err
			}
			if err := unix.Madvise(page, unix.MADV_DONTNEED); err != nil {
				return err
			}
		}
	}
	return nil
}

// Memory that is in no resident page of a process counts for its limit, or is refused.
func TestHoardedMemoryCounts(t *testing.T) {
	for how, refusal := range map[string]string{
		"shared":      "operation not permitted",
		"zero device": "permission denied",
		"page tables": "",
		"connections": "",
		"gifts":       "operation not permitted",
	} {
		t.Run(how, func(t *testing.T) {
			p, err := open(t, process.Source{Name: "actor", Memory: 128 << 20})
			if err != nil {
				t.Fatal(err)
			}
			note, exit := askWithin(t, p, 128<<20, "hoard", how)
			switch {
			case refusal != "" && strings.Contains(note, refusal):
			case exit == nil || exit.Kind != turn.ExitMemory || exit.Limit != "limits.memory":
				t.Errorf("%q %v", note, exit)
			}
			works(t, p)
		})
	}
}

// A process whose main thread has ended is measured and ended like any other.
func TestMainThreadEnds(t *testing.T) {
	p, err := open(t, process.Source{Name: headless, Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	pid := pidOf(t, p)
	if state := procFile(t, pid, "stat"); !strings.Contains(state, ") Z ") {
		t.Fatalf("its main thread lives: %s", state)
	}
	if note, exit := ask(t, t.Context(), p, "alloc", ""); exit == nil || exit.Kind != turn.ExitMemory {
		t.Errorf("%q %v", note, exit)
	}
	if note, exit := ask(t, t.Context(), p, "bomb", ""); exit == nil && !strings.Contains(note, "error: ") {
		t.Errorf("%q %v", note, exit)
	}
	pid = pidOf(t, p)
	note, exit := ask(t, t.Context(), p, "fork", "")
	if exit != nil {
		t.Fatal(exit)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	gone(t, number(t, note))
	for end := time.Now().Add(patience); syscall.Kill(pid, 0) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(fmt.Sprintf("process %d lives: ", pid), procFile(t, pid, "status"))
		}
	}
}

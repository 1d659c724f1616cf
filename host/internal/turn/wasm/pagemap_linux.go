package wasm

import (
	"encoding/binary"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pagemap is /proc/self/pagemap, the kernel's record of this process's pages: see
// https://docs.kernel.org/admin-guide/mm/pagemap.html. With it a reset does not
// compare an image of megabytes with a memory of which a turn has written a tenth.
type pagemap struct{ fd int }

// Bits of a page in the pagemap.
const (
	pageThere   = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61
)

// openPagemap opens it. Where the system does not show it, or counts in other
// pages, every page counts as written.
func openPagemap() pagemap {
	if os.Getpagesize() != osPage {
		return pagemap{-1}
	}
	fd, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return pagemap{-1}
	}
	p := pagemap{fd}
	if !p.reportsWrites() {
		p.close()
		return pagemap{-1}
	}
	return p
}

// reportsWrites reports whether the record marks a page that was written: without the
// marks a turn's bytes would be left in the memory of the next turn.
func (p pagemap) reportsWrites() bool {
	memory, err := unix.Mmap(-1, 0, 2*osPage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Munmap(memory) }()
	memory[osPage] = 1
	seen := false
	p.written(memory, func(at int) { seen = seen || at == osPage })
	return seen
}

// written calls each for the pages of a memory that may differ from what was
// laid under it. A page that was never touched, or is still the file's, cannot.
func (p pagemap) written(memory []byte, each func(at int)) {
	const most = 512 // pages in one read
	var buffer [most * 8]byte
	for at := 0; at < len(memory); at += most * osPage {
		marks := buffer[:min(len(memory)-at, most*osPage)/osPage*8]
		known := p.read(marks, memory[at:])
		for i := 0; i < len(marks); i += 8 {
			if !known || maybeWritten(binary.NativeEndian.Uint64(marks[i:])) {
				each(at + i/8*osPage)
			}
		}
	}
}

func maybeWritten(mark uint64) bool {
	touched := mark&(pageThere|pageSwapped) != 0
	shared := mark&pageThere != 0 && mark&pageOfFile != 0
	return touched && !shared
}

// read fills marks with the entries of the memory's pages and reports success.
func (p pagemap) read(marks, memory []byte) bool {
	if p.fd < 0 {
		return false
	}
	page := uintptr(unsafe.Pointer(&memory[0])) / osPage
	n, err := unix.Pread(p.fd, marks, int64(page)*8)
	return err == nil && n == len(marks)
}

func (p pagemap) close() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd) // fails only for a wrong argument
	}
}

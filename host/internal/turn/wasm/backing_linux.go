package wasm

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// backing is a sealed file in memory that holds the content of an image. It is
// laid under memories copy-on-write: they share its pages until they write.
type backing struct {
	fd   int
	view []byte // read-only
	pagemap
}

// seals forbid every later change of the content, by this process too.
const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL

func newBacking(content []byte) (b backing, err error) {
	if len(content) == 0 {
		return backing{fd: -1, pagemap: pagemap{-1}}, nil
	}
	if b.fd, err = unix.MemfdCreate("skep-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING); err != nil {
		return b, fmt.Errorf("memfd: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(b.fd)
		}
	}()
	if err := writeAll(b.fd, content); err != nil {
		return b, fmt.Errorf("memfd: write: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(b.fd), unix.F_ADD_SEALS, seals); err != nil {
		return b, fmt.Errorf("memfd: seal: %w", err)
	}
	// Private, because older kernels refuse any shared mapping of a sealed file.
	b.view, err = unix.Mmap(b.fd, 0, len(content), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return b, fmt.Errorf("memfd: map: %w", err)
	}
	b.pagemap = openPagemap()
	return b, nil
}

// writeAll writes the content, its zeros too: where the file has pages, one fault
// maps several of them.
func writeAll(fd int, content []byte) error {
	for at := 0; at < len(content); {
		n, err := unix.Pwrite(fd, content[at:], int64(at))
		if err != nil {
			return err
		}
		at += n
	}
	return nil
}

// mapInto maps the content over the beginning of a space and backs the rest of size
// with zeros.
func (b *backing) mapInto(s *space, size uint64) error {
	if n := len(b.view); n > 0 {
		_, err := unix.MmapPtr(b.fd, 0, unsafe.Pointer(&s.all[0]), uintptr(n),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
		if err != nil {
			return fmt.Errorf("map an image: %w", err)
		}
		s.committed = uint64(n)
	}
	if s.commit(size) == nil {
		return fmt.Errorf("no memory for %d bytes behind an image", size-s.committed)
	}
	return nil
}

// reset gives back the pages that were written. Where they are read next, the
// file's pages are there again, or zeros.
func (b *backing) reset(written []byte) error {
	if len(written) == 0 {
		return nil
	}
	return unix.Madvise(written, unix.MADV_DONTNEED)
}

func (b *backing) close() {
	if b.fd < 0 {
		return
	}
	_ = unix.Munmap(b.view) // both fail only for a wrong argument
	_ = unix.Close(b.fd)
	b.pagemap.close()
}

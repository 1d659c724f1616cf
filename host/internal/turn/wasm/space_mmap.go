//go:build linux || darwin

package wasm

import "syscall"

// space is a range of addresses, of which a growing part is backed by memory.
type space struct {
	all       []byte
	committed uint64
}

// reserve takes addresses without memory. Where the system refuses, the space
// is empty and every commit fails.
func reserve(size uint64) space {
	if size == 0 {
		return space{}
	}
	all, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_NONE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return space{}
	}
	return space{all: all}
}

func (s *space) size() uint64 { return uint64(len(s.all)) }

// commit backs the first size bytes, zeroed where they are new. It returns nil
// when the system has no memory.
func (s *space) commit(size uint64) []byte {
	if size > s.committed {
		fresh := s.all[s.committed:size]
		if err := syscall.Mprotect(fresh, syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
			return nil
		}
		s.committed = size
	}
	if s.all == nil {
		return []byte{}
	}
	return s.all[:size:len(s.all)]
}

func (s *space) free() {
	if s.all != nil {
		_ = syscall.Munmap(s.all) // fails only for a wrong argument
	}
	*s = space{}
}

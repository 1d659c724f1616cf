//go:build !linux && !darwin

package wasm

// space is a slice of the size a memory may ever have: the system backs it when
// it is touched.
type space struct{ all []byte }

func reserve(size uint64) space { return space{all: make([]byte, size)} }

func (s *space) size() uint64 { return uint64(len(s.all)) }

func (s *space) commit(size uint64) []byte {
	if s.all == nil {
		return []byte{}
	}
	return s.all[:size]
}

func (s *space) free() { *s = space{} }

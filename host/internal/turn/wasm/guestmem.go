package wasm

import "bytes"

// view returns the guest's bytes [ptr, ptr+size), checked in 64 bits. It is live
// and must not be kept: the guest's next instruction may change it.
func (r *run) view(ptr, size uint32) ([]byte, bool) {
	if uint64(ptr)+uint64(size) > uint64(r.memory.Size()) {
		return nil, false
	}
	return r.memory.Read(ptr, size)
}

// copyOut returns a copy of the guest's bytes.
func (r *run) copyOut(ptr, size uint32) ([]byte, bool) {
	b, ok := r.view(ptr, size)
	return bytes.Clone(b), ok
}

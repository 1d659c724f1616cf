package sandbox

import "skep/abi"

// handles are the answers a guest has not read to their end. Numbers start at 1
// and are not used again.
type handles struct {
	open map[int32]*answer
	last int32
}

// answer is the result of an op, or its error.
type answer struct {
	rest []byte
	err  *abi.Error
}

// put opens a handle; ok is false when too many are open.
func (h *handles) put(a *answer) (handle int32, ok bool) {
	if len(h.open) >= maxHandles {
		return 0, false
	}
	if h.open == nil {
		h.open = map[int32]*answer{}
	}
	h.last++
	h.open[h.last] = a
	return h.last, true
}

func (h *handles) get(handle int32) (*answer, bool) {
	a, ok := h.open[handle]
	return a, ok
}

func (h *handles) close(handle int32) bool {
	_, ok := h.open[handle]
	delete(h.open, handle)
	return ok
}

package sandbox

import "skep/abi"

// handles are the answers a guest has not closed. Numbers start at 1 and are not
// used again.
type handles struct {
	open map[int32]handle
	last int32
}

// handle is one answer. The rest of a call's answer is here already; others may
// still be on their way, and the port knows them.
type handle struct {
	op     abi.Op
	answer Answer
	here   bool
}

// put opens a handle; ok is false when too many are open.
func (h *handles) put(one handle) (number int32, ok bool) {
	if len(h.open) >= MaxHandles {
		return 0, false
	}
	if h.open == nil {
		h.open = map[int32]handle{}
	}
	h.last++
	h.open[h.last] = one
	return h.last, true
}

func (h *handles) get(number int32) (handle, bool) {
	one, ok := h.open[number]
	return one, ok
}

// take forgets a handle, which the caller closes.
func (h *handles) take(number int32) (handle, bool) {
	one, ok := h.open[number]
	delete(h.open, number)
	return one, ok
}

package wasm

import (
	"skep/abi"

	"skep/host/internal/turn"
)

// handles are the answers a guest has not closed. Numbers start at 1 and are not
// used again.
type handles struct {
	open map[int32]handle
	last int32
}

// handle is one answer. A local one is the rest of a call's answer, which has been
// read from the port; the answers of other ops may still arrive at the port.
type handle struct {
	op     abi.Op
	answer turn.Answer
	local  bool
}

// add opens a handle; ok is false when too many are open.
func (h *handles) add(one handle) (number int32, ok bool) {
	if len(h.open) >= turn.MaxHandles {
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

// remove removes a handle, which the caller closes.
func (h *handles) remove(number int32) (handle, bool) {
	one, ok := h.open[number]
	delete(h.open, number)
	return one, ok
}

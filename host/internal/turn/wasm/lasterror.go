package wasm

import (
	"skep/abi"
	"skep/host/internal/turn"
)

// refuse keeps an error for last_error and returns the import's result.
func (r *run) refuse(err *abi.Error) uint64 {
	r.lastErr = turn.SanitizeError(err)
	return uint64(-int64(r.lastErr.Code))
}

// refuse32 is refuse for imports whose result is an i32.
func (r *run) refuse32(err *abi.Error) uint64 { return uint64(uint32(r.refuse(err))) }

// lastError is the answer of op last_error: empty when no import has failed.
func (r *run) lastError() []byte {
	if r.lastErr == nil {
		return nil
	}
	return turn.EncodeError(r.lastErr)
}

// outsideMemory refuses a range of bytes that is not in the guest's memory.
func outsideMemory(name string, ptr, size uint32) *abi.Error {
	return turn.ImportError(abi.CodeInvalid, name, "pointer", "%d bytes at %d are not in the module's memory", size, ptr)
}

func (r *run) tooManyBytes(op abi.Op, what string) *abi.Error {
	return turn.TooManyBytes(op, what, r.bytesLeft(), r.limits)
}

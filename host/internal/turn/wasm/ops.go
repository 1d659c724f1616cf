package wasm

import (
	"fmt"

	"skep/abi"
	"skep/host/internal/turn"
)

// u32 reads an i32 parameter as what pointers and lengths are.
func u32(v uint64) uint32 { return uint32(v) }

// inputRead is input_read(off, ptr, cap) -> i32.
func (r *run) inputRead(s []uint64) {
	off, ptr, size := u32(s[0]), u32(s[1]), u32(s[2])
	to, ok := r.view(ptr, size)
	if !ok {
		r.charge(0)
		s[0] = r.refuse32(outsideMemory(abi.ImportInputRead, ptr, size))
		return
	}
	var input []byte
	if !r.starting {
		input = r.turn.Input
	}
	n := copy(to, input[min(uint64(off), uint64(len(input))):])
	r.charge(uint64(n))
	s[0] = uint64(n)
}

// outputWrite is output_write(ptr, len) -> i32. A refused write fails
// the turn: its output would be incomplete.
func (r *run) outputWrite(s []uint64) {
	ptr, size := u32(s[0]), u32(s[1])
	from, ok := r.view(ptr, size)
	if !ok {
		r.charge(0)
		s[0] = r.refuse32(outsideMemory(abi.ImportOutputWrite, ptr, size))
		return
	}
	if int64(len(r.output))+int64(size) > r.limits.Output {
		r.charge(0)
		r.outputRefused = true
		s[0] = r.refuse32(turn.ImportError(abi.CodeLimit, abi.ImportOutputWrite, "output",
			"output is at most %d bytes; %s allows more", r.limits.Output, turn.KeyOutput))
		return
	}
	r.charge(uint64(size))
	r.output = append(r.output, from...)
	s[0] = uint64(len(r.output))
}

// callOp is call(op, req_ptr, req_len, rsp_ptr, rsp_cap) -> i64.
func (r *run) callOp(s []uint64) {
	op := abi.Op(int32(u32(s[0])))
	reqPtr, reqLen, rspPtr, rspCap := u32(s[1]), u32(s[2]), u32(s[3]), u32(s[4])
	r.charge(0)
	// Before the op runs: its effect cannot be undone.
	if _, ok := r.view(rspPtr, rspCap); !ok {
		s[0] = r.refuse(outsideMemory(abi.ImportCall, rspPtr, rspCap))
		return
	}
	if op == abi.OpLastError {
		s[0] = r.writeAnswer(r.lastError(), rspPtr, rspCap)
		return
	}
	body, err := r.runOp(op, reqPtr, reqLen)
	if err != nil {
		s[0] = r.refuse(err)
		return
	}
	s[0] = r.writeAnswer(body, rspPtr, rspCap)
}

// writeAnswer copies an answer to the guest. The rest of one that does not fit is
// kept under a handle: length in bits 0 to 31, handle in bits 32 to 62.
func (r *run) writeAnswer(body []byte, ptr, size uint32) uint64 {
	to, ok := r.view(ptr, size)
	if !ok { // cannot happen: callOp has checked it, and a memory does not shrink
		return r.refuse(outsideMemory(abi.ImportCall, ptr, size))
	}
	n := copy(to, body)
	if n == len(body) {
		return uint64(n)
	}
	number, ok := r.handles.add(handle{answer: turn.Completed(body[n:], nil), local: true})
	if !ok {
		return r.refuse(turn.TooManyHandles(abi.ImportCall))
	}
	return uint64(number)<<32 | uint64(len(body))
}

// runOp runs one op and waits for it.
func (r *run) runOp(op abi.Op, ptr, size uint32) ([]byte, *abi.Error) {
	req, err := r.admitRequest(abi.ImportCall, op, ptr, size)
	if err != nil {
		return nil, err
	}
	body, err := r.callPort(op, req)
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > r.bytesLeft() {
		return nil, r.tooManyBytes(op, fmt.Sprintf("the op has run, but its answer has %d bytes", len(body)))
	}
	r.countBytes(len(body))
	return body, nil
}

// admitRequest checks a call or submit against its bounds and budgets, counts it and
// copies the request. A request that is refused does not run and does not count.
func (r *run) admitRequest(name string, op abi.Op, ptr, size uint32) ([]byte, *abi.Error) {
	switch {
	case size > turn.MaxRequest:
		return nil, turn.RequestTooLarge(op, int(size))
	case len(r.handles.open) >= turn.MaxHandles:
		return nil, turn.TooManyHandles(name)
	case r.hostCalls >= r.limits.HostCalls:
		return nil, turn.TooManyCalls(op, r.limits)
	case int64(size) > r.bytesLeft():
		return nil, r.tooManyBytes(op, fmt.Sprintf("the request has %d bytes", size))
	}
	req, ok := r.copyOut(ptr, size)
	if !ok {
		return nil, outsideMemory(name, ptr, size)
	}
	r.hostCalls++
	r.countBytes(len(req))
	return req, nil
}

// callPort runs an op of the port, without the token.
func (r *run) callPort(op abi.Op, req []byte) (body []byte, err *abi.Error) {
	switch {
	case r.starting:
		return r.callWhileStarting(op, req)
	case r.turn.Ops == nil:
		return nil, turn.NoOps(op)
	}
	ctx := r.opContext()
	r.withoutToken(func() { body, err = r.turn.Ops.Call(ctx, op, req) })
	return body, err
}

// callWhileStarting answers the ops of a module before its turn: only log is granted,
// and goes to the operator's debug log.
func (r *run) callWhileStarting(op abi.Op, req []byte) ([]byte, *abi.Error) {
	if op != abi.OpLog {
		return nil, turn.NotGranted(op)
	}
	r.log.Debug("module log at start", "module", r.module.digest, "line", turn.Output(turn.Clip(string(req), maxLogLine)))
	return []byte("{}"), nil
}

// bytesLeft is the bytes that the turn's ops may still move.
func (r *run) bytesLeft() int64 { return max(0, r.limits.HostBytes-r.hostBytes) }

// countBytes counts and charges bytes that cross the boundary in an op.
func (r *run) countBytes(n int) {
	r.hostBytes += int64(n)
	r.chargeBytes(n)
}

// abort is abort(code, ptr, len): the guest gives up.
func (r *run) abort(s []uint64) {
	code, ptr, size := abi.Code(int32(u32(s[0]))), u32(s[1]), u32(s[2])
	text := "(its message is not in its memory)"
	if b, ok := r.view(ptr, min(size, turn.MaxMessage)); ok {
		text = string(b)
	}
	r.kill(turn.AbortExit(code, text))
}

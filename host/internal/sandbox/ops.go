package sandbox

import (
	"fmt"

	"skep/abi"
)

// u32 reads an i32 parameter as what pointers and lengths are.
func u32(v uint64) uint32 { return uint32(v) }

// inputRead is input_read(off, ptr, cap) -> i32.
func (r *run) inputRead(s []uint64) {
	off, ptr, size := u32(s[0]), u32(s[1]), u32(s[2])
	to, ok := r.view(ptr, size)
	if !ok {
		r.charge(0)
		s[0] = r.refuse32(outside(abi.ImportInputRead, ptr, size))
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

// outputWrite is output_write(ptr, len) -> i32. A refused write spoils the
// turn: what it would leave behind is not what the guest meant.
func (r *run) outputWrite(s []uint64) {
	ptr, size := u32(s[0]), u32(s[1])
	from, ok := r.view(ptr, size)
	if !ok {
		r.charge(0)
		s[0] = r.refuse32(outside(abi.ImportOutputWrite, ptr, size))
		return
	}
	if int64(len(r.output))+int64(size) > r.limits.Output {
		r.charge(0)
		r.spoiled = true
		s[0] = r.refuse32(fault(abi.CodeLimit, abi.ImportOutputWrite, "output",
			"output is at most %d bytes; %s allows more", r.limits.Output, keyOutput))
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
	// Before the op runs: it cannot be taken back.
	if _, ok := r.view(rspPtr, rspCap); !ok {
		s[0] = r.refuse(outside(abi.ImportCall, rspPtr, rspCap))
		return
	}
	if op == abi.OpLastError {
		s[0] = r.deliver(r.lastError(), rspPtr, rspCap)
		return
	}
	body, err := r.perform(op, reqPtr, reqLen)
	if err != nil {
		s[0] = r.refuse(err)
		return
	}
	s[0] = r.deliver(body, rspPtr, rspCap)
}

// deliver copies an answer to the guest. What does not fit is kept under a
// handle: length in bits 0 to 31, handle in bits 32 to 62.
func (r *run) deliver(body []byte, ptr, size uint32) uint64 {
	to, ok := r.view(ptr, size)
	if !ok { // the memory has not shrunk since callOp looked
		return r.refuse(outside(abi.ImportCall, ptr, size))
	}
	n := copy(to, body)
	if n == len(body) {
		return uint64(n)
	}
	number, ok := r.handles.put(handle{answer: Done(body[n:], nil), here: true})
	if !ok {
		return r.refuse(TooManyHandles(abi.ImportCall))
	}
	return uint64(number)<<32 | uint64(len(body))
}

// perform runs one op and waits for it.
func (r *run) perform(op abi.Op, ptr, size uint32) ([]byte, *abi.Error) {
	req, err := r.request(abi.ImportCall, op, ptr, size)
	if err != nil {
		return nil, err
	}
	body, err := r.ask(op, req)
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > r.bytesLeft() {
		return nil, r.tooManyBytes(op, fmt.Sprintf("the op has run, but its answer has %d bytes", len(body)))
	}
	r.move(len(body))
	return body, nil
}

// request checks a call or submit against its bounds and budgets, counts it and
// copies what it asks. What is refused here does not run and does not count.
func (r *run) request(name string, op abi.Op, ptr, size uint32) ([]byte, *abi.Error) {
	switch {
	case size > MaxRequest:
		return nil, abi.Errorf(abi.CodeLimit, op, "request", "a request of %d bytes, at most %d", size, MaxRequest)
	case len(r.handles.open) >= MaxHandles:
		return nil, TooManyHandles(name)
	case r.calls >= r.limits.HostCalls:
		return nil, TooManyCalls(op, r.limits)
	case int64(size) > r.bytesLeft():
		return nil, r.tooManyBytes(op, fmt.Sprintf("the request has %d bytes", size))
	}
	req, ok := r.copyOut(ptr, size)
	if !ok {
		return nil, outside(name, ptr, size)
	}
	r.calls++
	r.move(len(req))
	return req, nil
}

// ask hands an op to the port, without the token.
func (r *run) ask(op abi.Op, req []byte) (body []byte, err *abi.Error) {
	switch {
	case r.starting:
		return r.askStarting(op, req)
	case r.turn.Ops == nil:
		return nil, noOps(op)
	}
	ctx := r.opContext()
	r.wait(func() { body, err = r.turn.Ops.Call(ctx, op, req) })
	return body, err
}

func noOps(op abi.Op) *abi.Error {
	return abi.Errorf(abi.CodeUnsupported, op, "op", "this host has no ops")
}

// askStarting answers a module that has no turn yet: nothing is granted but log,
// which goes to the operator's debug log.
func (r *run) askStarting(op abi.Op, req []byte) ([]byte, *abi.Error) {
	if op != abi.OpLog {
		return nil, abi.Errorf(abi.CodeDenied, op, "start", "%s is not granted while a module starts", op)
	}
	r.log.Debug("module log at start", "module", r.module.digest, "line", clip(string(req), maxLogLine))
	return []byte("{}"), nil
}

// bytesLeft is what the turn's ops may still move.
func (r *run) bytesLeft() int64 { return max(0, r.limits.HostBytes-r.moved) }

// move counts and charges bytes that cross the boundary in an op.
func (r *run) move(n int) {
	r.moved += int64(n)
	r.chargeBytes(n)
}

// abort is abort(code, ptr, len): the guest gives up.
func (r *run) abort(s []uint64) {
	code, ptr, size := abi.Code(int32(u32(s[0]))), u32(s[1]), u32(s[2])
	text := "(its message is not in its memory)"
	if b, ok := r.view(ptr, min(size, maxGuestAbort)); ok {
		text = string(b)
	}
	r.kill(AbortExit(code, text))
}

package sandbox

import (
	"encoding/json"
	"fmt"

	"skep/abi"
)

// u32 reads an i32 parameter as what pointers and lengths are.
func u32(v uint64) uint32 { return uint32(v) }

// refuse keeps an error for last_error and returns what the guest gets.
func (r *run) refuse(err *abi.Error) uint64 {
	if err.Code <= abi.CodeOK { // a port's slip must not look like an answer
		err = &abi.Error{Code: abi.CodeInternal, Op: err.Op, Reason: err.Reason, Message: err.Message}
	}
	r.last = err
	return uint64(-int64(err.Code))
}

// refuse32 is refuse for imports whose result is an i32.
func (r *run) refuse32(err *abi.Error) uint64 { return uint64(uint32(r.refuse(err))) }

// invalid is the error of a misused import.
func invalid(name, reason, format string, args ...any) *abi.Error {
	return &abi.Error{Code: abi.CodeInvalid, Op: name, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func outside(name string, ptr, size uint32) *abi.Error {
	return invalid(name, "pointer", "%d bytes at %d are not in the module's memory", size, ptr)
}

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
		s[0] = r.refuse32(&abi.Error{Code: abi.CodeLimit, Op: abi.ImportOutputWrite, Reason: "output",
			Message: fmt.Sprintf("output is at most %d bytes", r.limits.Output)})
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
	body, err := r.perform(abi.ImportCall, op, reqPtr, reqLen)
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
	handle, ok := r.handles.put(&answer{rest: body[n:]})
	if !ok {
		return r.refuse(tooManyHandles(abi.ImportCall))
	}
	return uint64(handle)<<32 | uint64(len(body))
}

func tooManyHandles(name string) *abi.Error {
	return &abi.Error{Code: abi.CodeLimit, Op: name, Reason: "handles",
		Message: fmt.Sprintf("at most %d handles are open at once; close some", maxHandles)}
}

// perform counts, checks and runs one op.
func (r *run) perform(name string, op abi.Op, ptr, size uint32) ([]byte, *abi.Error) {
	if r.calls++; r.calls > r.limits.HostCalls {
		r.kill(&Exit{Kind: ExitCalls, Limit: keyHostCalls,
			Message: fmt.Sprintf("called the host more than %d times", r.limits.HostCalls)})
	}
	if size > maxRequest {
		return nil, &abi.Error{Code: abi.CodeLimit, Op: opName(op), Reason: "request",
			Message: fmt.Sprintf("a request of %d bytes, at most %d", size, maxRequest)}
	}
	if len(r.handles.open) >= maxHandles {
		return nil, tooManyHandles(name)
	}
	req, ok := r.copyOut(ptr, size)
	if !ok {
		return nil, outside(name, ptr, size)
	}
	r.move(len(req))
	body, err := r.ask(op, req)
	if err != nil {
		return nil, err
	}
	r.move(len(body))
	return body, nil
}

// ask hands an op to the port, without the token.
func (r *run) ask(op abi.Op, req []byte) (body []byte, err *abi.Error) {
	switch {
	case r.starting:
		return r.askStarting(op, req)
	case r.turn.Ops == nil:
		return nil, abi.Errorf(abi.CodeUnsupported, op, "op", "this host has no ops")
	}
	r.wait(func() { body, err = r.turn.Ops.Call(r.ctx, op, req) })
	return body, err
}

// askStarting answers a module that has no turn yet: nothing is granted but log,
// which goes to the operator's debug log.
func (r *run) askStarting(op abi.Op, req []byte) ([]byte, *abi.Error) {
	if op != abi.OpLog {
		return nil, abi.Errorf(abi.CodeDenied, op, "start", "%s is not granted while a module starts", opName(op))
	}
	r.log.Debug("module log at start", "module", r.module.digest, "line", clip(string(req), maxLogLine))
	return []byte("{}"), nil
}

func opName(op abi.Op) string {
	if info, ok := abi.Lookup(op); ok {
		return info.Name
	}
	return fmt.Sprintf("op %d", op)
}

// move counts and charges bytes that cross the boundary in an op.
func (r *run) move(n int) {
	if r.moved += int64(n); r.moved > r.limits.HostBytes {
		r.kill(&Exit{Kind: ExitCalls, Limit: keyHostBytes,
			Message: fmt.Sprintf("moved more than %d bytes in host calls", r.limits.HostBytes)})
	}
	if !r.meter.take(r.slice, int64(n)/bytesPerUnit) {
		r.killFuel()
	}
}

// lastError is the answer of op last_error: nothing when nothing failed.
func (r *run) lastError() []byte {
	if r.last == nil {
		return nil
	}
	body, err := json.Marshal(struct {
		Code string `json:"code"`
		*abi.Error
	}{r.last.Code.String(), r.last})
	if err != nil {
		return nil // strings and a number always encode
	}
	return body
}

// submitOp is submit(op, req_ptr, req_len) -> i64. The op runs at once; the
// guest may not rely on it.
func (r *run) submitOp(s []uint64) {
	op := abi.Op(int32(u32(s[0])))
	r.charge(0)
	body, err := r.perform(abi.ImportSubmit, op, u32(s[1]), u32(s[2]))
	if err != nil && err.Op == abi.ImportSubmit { // misuse of the import itself
		s[0] = r.refuse(err)
		return
	}
	handle, ok := r.handles.put(&answer{rest: body, err: err})
	if !ok {
		s[0] = r.refuse(tooManyHandles(abi.ImportSubmit))
		return
	}
	s[0] = uint64(handle)
}

// waitHandles is wait(handles_ptr, n, timeout_ms) -> i32. Every open handle is
// ready, so the first one is.
func (r *run) waitHandles(s []uint64) {
	ptr, n := u32(s[0]), u32(s[1])
	r.charge(uint64(min(n, maxWait)) * 4)
	if n == 0 || n > maxWait {
		s[0] = r.refuse32(invalid(abi.ImportWait, "handles", "%d handles, from 1 to %d", n, maxWait))
		return
	}
	list, ok := r.view(ptr, 4*n)
	if !ok {
		s[0] = r.refuse32(outside(abi.ImportWait, ptr, 4*n))
		return
	}
	for i := range n {
		handle := int32(le.Uint32(list[4*i:]))
		if _, ok := r.handles.get(handle); !ok {
			s[0] = r.refuse32(noHandle(abi.ImportWait, handle))
			return
		}
	}
	s[0] = 0
}

func noHandle(name string, handle int32) *abi.Error {
	return &abi.Error{Code: abi.CodeNotFound, Op: name, Reason: "handle",
		Message: fmt.Sprintf("handle %d is not open", handle)}
}

// readHandle is read(handle, ptr, cap) -> i64.
func (r *run) readHandle(s []uint64) {
	handle, ptr, size := int32(u32(s[0])), u32(s[1]), u32(s[2])
	a, known := r.handles.get(handle)
	to, ok := r.view(ptr, size)
	switch {
	case !known:
		r.charge(0)
		s[0] = r.refuse(noHandle(abi.ImportRead, handle))
	case !ok:
		r.charge(0)
		s[0] = r.refuse(outside(abi.ImportRead, ptr, size))
	case a.err != nil:
		r.charge(0)
		s[0] = r.refuse(a.err)
	default:
		n := copy(to, a.rest)
		a.rest = a.rest[n:]
		r.charge(uint64(n))
		s[0] = uint64(n)
	}
}

// closeHandle is close(handle) -> i32.
func (r *run) closeHandle(s []uint64) {
	handle := int32(u32(s[0]))
	r.charge(0)
	if !r.handles.close(handle) {
		s[0] = r.refuse32(noHandle(abi.ImportClose, handle))
		return
	}
	s[0] = 0
}

// abort is abort(code, ptr, len): the guest gives up.
func (r *run) abort(s []uint64) {
	code, ptr, size := abi.Code(int32(u32(s[0]))), u32(s[1]), u32(s[2])
	text := "(its message is not in its memory)"
	if b, ok := r.view(ptr, min(size, maxGuestAbort)); ok {
		text = clip(string(b), maxGuestAbort)
	}
	r.kill(&Exit{Kind: ExitAbort, Message: code.String() + ": " + text})
}

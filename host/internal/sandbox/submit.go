package sandbox

import (
	"time"

	"skep/abi"
)

// submitOp is submit(op, req_ptr, req_len) -> i64.
func (r *run) submitOp(s []uint64) {
	op := abi.Op(int32(u32(s[0])))
	r.charge(0)
	answer, err := r.launch(op, u32(s[1]), u32(s[2]))
	if err != nil {
		s[0] = r.refuse(err)
		return
	}
	number, ok := r.handles.put(handle{op: op, answer: answer})
	if !ok { // request has looked
		r.wait(answer.Close)
		s[0] = r.refuse(TooManyHandles(abi.ImportSubmit))
		return
	}
	s[0] = uint64(number)
}

// launch starts one op.
func (r *run) launch(op abi.Op, ptr, size uint32) (answer Answer, err *abi.Error) {
	req, err := r.request(abi.ImportSubmit, op, ptr, size)
	switch {
	case err != nil:
		return nil, err
	case op == abi.OpLastError:
		return Done(r.lastError(), nil), nil
	case r.starting:
		return Done(r.askStarting(op, req)), nil
	case r.turn.Ops == nil:
		return nil, noOps(op)
	}
	ctx := r.opContext()
	r.wait(func() { answer, err = r.turn.Ops.Submit(ctx, op, req) })
	return answer, err
}

// waitHandles is wait(handles_ptr, n, timeout_ms) -> i32.
func (r *run) waitHandles(s []uint64) {
	ptr, n, timeout := u32(s[0]), u32(s[1]), time.Duration(int32(u32(s[2])))*time.Millisecond
	r.charge(uint64(min(n, MaxWait)) * 4)
	index, err := r.firstReady(ptr, n, timeout)
	if err != nil {
		s[0] = r.refuse32(err)
		return
	}
	s[0] = uint64(index)
}

// firstReady waits for a list of handles.
func (r *run) firstReady(ptr, n uint32, timeout time.Duration) (int, *abi.Error) {
	if n == 0 || n > MaxWait {
		return 0, fault(abi.CodeInvalid, abi.ImportWait, "handles", "%d handles, from 1 to %d", n, MaxWait)
	}
	list, ok := r.view(ptr, 4*n)
	if !ok {
		return 0, outside(abi.ImportWait, ptr, 4*n)
	}
	answers, here := make([]Answer, n), -1
	for i := range answers {
		number := int32(le.Uint32(list[4*i:]))
		h, known := r.handles.get(number)
		if !known {
			return 0, NoHandle(abi.ImportWait, number)
		}
		answers[i] = h.answer
		if h.here && here < 0 {
			here = i
		}
	}
	if here < 0 {
		return r.waitFor(answers, timeout)
	}
	// One is ready. One of those before it may be, too.
	if here > 0 {
		index, err := r.waitFor(answers[:here], 0)
		if err == nil || err.Code != abi.CodeDeadline {
			return index, err
		}
	}
	return here, nil
}

// waitFor asks the port, without the token.
func (r *run) waitFor(answers []Answer, timeout time.Duration) (index int, err *abi.Error) {
	if r.starting || r.turn.Ops == nil { // all there are have ended
		return 0, nil
	}
	ctx := r.opContext()
	r.wait(func() { index, err = r.turn.Ops.Wait(ctx, answers, timeout) })
	if err == nil && (index < 0 || index >= len(answers)) {
		err = fault(abi.CodeInternal, abi.ImportWait, "port", "the host waited for %d answers and returned the %d.", len(answers), index)
	}
	return index, err
}

// readHandle is read(handle, ptr, cap) -> i64.
func (r *run) readHandle(s []uint64) {
	number, ptr, size := int32(u32(s[0])), u32(s[1]), u32(s[2])
	r.charge(0)
	h, known := r.handles.get(number)
	to, ok := r.view(ptr, size)
	switch {
	case !known:
		s[0] = r.refuse(NoHandle(abi.ImportRead, number))
		return
	case !ok:
		s[0] = r.refuse(outside(abi.ImportRead, ptr, size))
		return
	}
	n, err := r.readAnswer(h, to)
	if err != nil {
		s[0] = r.refuse(err)
		return
	}
	s[0] = uint64(n)
}

// readAnswer reads what fits into the guest's buffer and its budget. The rest of
// a call's answer was counted with the call.
func (r *run) readAnswer(h handle, to []byte) (n int, err *abi.Error) {
	if len(to) == 0 {
		return 0, nil
	}
	if !h.here {
		if r.bytesLeft() == 0 {
			return 0, r.tooManyBytes(h.op, "there may be more to read")
		}
		to = to[:min(int64(len(to)), r.bytesLeft())]
	}
	ctx := r.opContext()
	r.wait(func() { n, err = h.answer.Read(ctx, to) })
	switch {
	case err != nil:
		return 0, err
	case n < 0 || n > len(to):
		return 0, fault(abi.CodeInternal, abi.ImportRead, "port", "the host read %d bytes into %d", n, len(to))
	case !h.here:
		r.move(n)
	}
	r.chargeBytes(n)
	return n, nil
}

// closeHandle is close(handle) -> i32.
func (r *run) closeHandle(s []uint64) {
	number := int32(u32(s[0]))
	r.charge(0)
	h, known := r.handles.take(number)
	if !known {
		s[0] = r.refuse32(NoHandle(abi.ImportClose, number))
		return
	}
	r.wait(h.answer.Close)
	s[0] = 0
}

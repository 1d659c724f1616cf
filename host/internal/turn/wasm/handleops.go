package wasm

import (
	"time"

	"skep/abi"
	"skep/host/internal/turn"
)

// submitOp is submit(op, req_ptr, req_len) -> i64.
func (r *run) submitOp(s []uint64) {
	op := abi.Op(int32(u32(s[0])))
	r.charge(0)
	answer, err := r.startOp(op, u32(s[1]), u32(s[2]))
	if err != nil {
		s[0] = r.refuse(err)
		return
	}
	number, ok := r.handles.add(handle{op: op, answer: answer})
	if !ok { // admitRequest has checked the number of handles
		r.withoutToken(answer.Close)
		s[0] = r.refuse(turn.TooManyHandles(abi.ImportSubmit))
		return
	}
	s[0] = uint64(number)
}

// startOp starts one op.
func (r *run) startOp(op abi.Op, ptr, size uint32) (answer turn.Answer, err *abi.Error) {
	req, err := r.admitRequest(abi.ImportSubmit, op, ptr, size)
	switch {
	case err != nil:
		return nil, err
	case op == abi.OpLastError:
		return turn.Completed(r.lastError(), nil), nil
	case r.starting:
		return turn.Completed(r.callWhileStarting(op, req)), nil
	case r.turn.Ops == nil:
		return nil, turn.NoOps(op)
	}
	ctx := r.opContext()
	r.withoutToken(func() { answer, err = r.turn.Ops.Submit(ctx, op, req) })
	return answer, err
}

// waitHandles is wait(handles_ptr, n, timeout_ms) -> i32.
func (r *run) waitHandles(s []uint64) {
	ptr, n, timeout := u32(s[0]), u32(s[1]), time.Duration(int32(u32(s[2])))*time.Millisecond
	r.charge(uint64(min(n, turn.MaxWait)) * 4)
	index, err := r.firstReady(ptr, n, timeout)
	if err != nil {
		s[0] = r.refuse32(err)
		return
	}
	s[0] = uint64(index)
}

// firstReady returns the index of the first of several handles that is ready.
func (r *run) firstReady(ptr, n uint32, timeout time.Duration) (int, *abi.Error) {
	if n == 0 || n > turn.MaxWait {
		return 0, turn.WaitCountError(int(n))
	}
	list, ok := r.view(ptr, 4*n)
	if !ok {
		return 0, outsideMemory(abi.ImportWait, ptr, 4*n)
	}
	answers, here := make([]turn.Answer, n), -1
	for i := range answers {
		number := int32(le.Uint32(list[4*i:]))
		h, known := r.handles.get(number)
		if !known {
			return 0, turn.UnknownHandle(abi.ImportWait, number)
		}
		answers[i] = h.answer
		if h.local && here < 0 {
			here = i
		}
	}
	if here < 0 {
		return r.waitPort(answers, timeout)
	}
	// One is ready. One before it may be ready, too.
	if here > 0 {
		index, err := r.waitPort(answers[:here], 0)
		if err == nil || err.Code != abi.CodeDeadline {
			return index, err
		}
	}
	return here, nil
}

// waitPort waits for answers of the port, without the token.
func (r *run) waitPort(answers []turn.Answer, timeout time.Duration) (index int, err *abi.Error) {
	if r.starting || r.turn.Ops == nil { // every answer has ended
		return 0, nil
	}
	ctx := r.opContext()
	r.withoutToken(func() { index, err = r.turn.Ops.Wait(ctx, answers, timeout) })
	if err == nil && (index < 0 || index >= len(answers)) {
		err = turn.ImportError(abi.CodeInternal, abi.ImportWait, "port", "the host waited for %d answers and returned the %d.", len(answers), index)
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
		s[0] = r.refuse(turn.UnknownHandle(abi.ImportRead, number))
		return
	case !ok:
		s[0] = r.refuse(outsideMemory(abi.ImportRead, ptr, size))
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
	if !h.local {
		if r.bytesLeft() == 0 {
			return 0, r.tooManyBytes(h.op, "there may be more to read")
		}
		to = to[:min(int64(len(to)), r.bytesLeft())]
	}
	ctx := r.opContext()
	r.withoutToken(func() { n, err = h.answer.Read(ctx, to) })
	switch {
	case err != nil:
		return 0, err
	case n < 0 || n > len(to):
		return 0, turn.ImportError(abi.CodeInternal, abi.ImportRead, "port", "the host read %d bytes into %d", n, len(to))
	case !h.local:
		r.countBytes(n)
	}
	r.chargeBytes(n)
	return n, nil
}

// closeHandle is close(handle) -> i32.
func (r *run) closeHandle(s []uint64) {
	number := int32(u32(s[0]))
	r.charge(0)
	h, known := r.handles.remove(number)
	if !known {
		s[0] = r.refuse32(turn.UnknownHandle(abi.ImportClose, number))
		return
	}
	r.withoutToken(h.answer.Close)
	s[0] = 0
}

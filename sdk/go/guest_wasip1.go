//go:build wasip1

package skep

import (
	"runtime"
	"time"
	"unsafe"

	"skep/sdk/go/internal/abi"
	"skep/sdk/go/internal/link"
)

//go:wasmimport skep_v1 input_read
func inputRead(off uint32, ptr unsafe.Pointer, size uint32) int32

//go:wasmimport skep_v1 output_write
func outputWrite(ptr unsafe.Pointer, size uint32) int32

//go:wasmimport skep_v1 call
func hostCall(op int32, req unsafe.Pointer, reqLen uint32, rsp unsafe.Pointer, rspCap uint32) int64

//go:wasmimport skep_v1 submit
func hostSubmit(op int32, req unsafe.Pointer, reqLen uint32) int64

//go:wasmimport skep_v1 wait
func hostWait(handles unsafe.Pointer, n uint32, timeoutMS int32) int32

//go:wasmimport skep_v1 read
func hostRead(handle int32, ptr unsafe.Pointer, size uint32) int64

//go:wasmimport skep_v1 close
func hostClose(handle int32) int32

//go:wasmimport skep_v1 abort
func hostAbort(code int32, ptr unsafe.Pointer, size uint32)

//go:wasmexport skep_abi_v1
func exportMarker() {}

//go:wasmexport skep_describe
func exportDescribe() int32 {
	return int32(guard(abort, func() abi.Status { return describe(&guest{}) }))
}

//go:wasmexport skep_warm
func exportWarm() int32 {
	return int32(guard(abort, func() abi.Status { return warm(&guest{}) }))
}

//go:wasmexport skep_turn
func exportTurn(size int32) int32 {
	return int32(guard(abort, func() abi.Status {
		return abi.Status(Drive(&guest{size: size}, module.agent))
	}))
}

//go:wasmexport skep_action
func exportAction(size int32) int32 {
	return int32(guard(abort, func() abi.Status {
		return abi.Status(DriveAction(&guest{size: size}, module.agent))
	}))
}

func abort(code abi.Code, message string) {
	hostAbort(int32(code), unsafe.Pointer(unsafe.StringData(message)), uint32(len(message)))
}

// firstBuffer is the answer buffer a turn begins with; it grows to the largest
// answer seen. A module serves one call at a time, and what is not written to
// costs a turn nothing.
var firstBuffer [16 << 10]byte

// guest is the host as seen from inside a module.
type guest struct {
	size   int32
	answer []byte // reused by every call
}

var _ link.Host = (*guest)(nil)

// Input pulls the whole input.
func (g *guest) Input() []byte {
	if g.size <= 0 {
		return nil
	}
	buf := make([]byte, g.size)
	n := inputRead(0, unsafe.Pointer(unsafe.SliceData(buf)), uint32(len(buf)))
	if n < 0 {
		return nil
	}
	return buf[:n]
}

// Output appends to the call's output.
func (g *guest) Output(data []byte) abi.Code {
	n := outputWrite(unsafe.Pointer(unsafe.SliceData(data)), uint32(len(data)))
	runtime.KeepAlive(data)
	if n < 0 {
		return abi.Code(-n)
	}
	return abi.CodeOK
}

// Call runs an op. An answer larger than the buffer is read to its end.
func (g *guest) Call(op abi.Op, req []byte) ([]byte, abi.Code) {
	n := g.call(op, req)
	if n < 0 {
		return g.LastError(), abi.Code(-n)
	}
	size, handle := int(uint32(n)), int32(n>>32)
	if handle == 0 {
		return g.answer[:size], abi.CodeOK
	}
	return g.rest(size, handle)
}

func (g *guest) call(op abi.Op, req []byte) int64 {
	if g.answer == nil {
		g.answer = firstBuffer[:]
	}
	n := hostCall(int32(op), unsafe.Pointer(unsafe.SliceData(req)), uint32(len(req)),
		unsafe.Pointer(unsafe.SliceData(g.answer)), uint32(len(g.answer)))
	runtime.KeepAlive(req)
	return n
}

// rest reads what did not fit behind what did.
func (g *guest) rest(size int, handle int32) ([]byte, abi.Code) {
	have := len(g.answer)
	whole := make([]byte, size)
	copy(whole, g.answer)
	g.answer = whole
	defer hostClose(handle)
	for have < size {
		n := hostRead(handle, unsafe.Pointer(&whole[have]), uint32(size-have))
		if n < 0 {
			return nil, abi.Code(-n)
		}
		if n == 0 {
			break
		}
		have += int(n)
	}
	return whole[:have], abi.CodeOK
}

// LastError asks for the last error. It fits the first buffer.
func (g *guest) LastError() []byte {
	n := g.call(abi.OpLastError, nil)
	if n < 0 || n > int64(len(g.answer)) {
		return nil
	}
	return g.answer[:n]
}

// Submit starts an op.
func (g *guest) Submit(op abi.Op, req []byte) int64 {
	n := hostSubmit(int32(op), unsafe.Pointer(unsafe.SliceData(req)), uint32(len(req)))
	runtime.KeepAlive(req)
	return n
}

// Wait waits for the first of several handles.
func (g *guest) Wait(handles []int32, timeoutMS int32) int32 {
	n := hostWait(unsafe.Pointer(unsafe.SliceData(handles)), uint32(len(handles)), timeoutMS)
	runtime.KeepAlive(handles)
	return n
}

// Read reads on.
func (g *guest) Read(handle int32, to []byte) int64 {
	return hostRead(handle, unsafe.Pointer(unsafe.SliceData(to)), uint32(len(to)))
}

// Close forgets a handle.
func (g *guest) Close(handle int32) { hostClose(handle) }

// Now reads WASI's clock, which is the turn's.
func (g *guest) Now() time.Time { return time.Now() }

// Sleep parks the guest; the host moves the turn's clock.
func (g *guest) Sleep(d time.Duration) { time.Sleep(d) }

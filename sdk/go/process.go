package skep

import (
	"time"

	"skep/sdk/go/internal/abi"
	"skep/sdk/go/internal/link"
)

// Process is the host as an agent reaches it that runs as a process of its own. It
// is the seam for package goproc; agents do not use it. It serves one goroutine at a
// time. Negative results are minus a code.
type Process interface {
	Input() []byte
	Output(data []byte) Code
	Call(op Op, req []byte) ([]byte, Code)
	Submit(op Op, req []byte) int64
	Wait(handles []int32, timeoutMS int32) int32
	Read(handle int32, to []byte) int64
	Close(handle int32) int32
	LastError() []byte
	Now() time.Time
	Sleep(d time.Duration)
}

// Part is what of a registered agent a process runs.
type Part int

// The parts.
const (
	PartDescribe Part = iota
	PartWarm
	PartTurn
	PartAction
)

// Serve runs a part of the registered agent and returns its status. A panic of the
// agent goes to abort. Like [Process] it is a seam.
func (Registered) Serve(part Part, p Process, abort func(code Code, message string)) int32 {
	h := processHost{p}
	return int32(guard(func(code abi.Code, message string) { abort(Code(code), message) }, func() abi.Status {
		switch part {
		case PartDescribe:
			return describe(h)
		case PartWarm:
			return warm(h)
		case PartAction:
			return abi.Status(DriveAction(h, module.agent))
		}
		return abi.Status(Drive(h, module.agent))
	}))
}

// processHost is a process's host in the words of the SDK.
type processHost struct{ Process }

var _ link.Host = processHost{}

// Output appends to the output of the call.
func (h processHost) Output(data []byte) abi.Code { return abi.Code(h.Process.Output(data)) }

// Call runs an op.
func (h processHost) Call(op abi.Op, req []byte) ([]byte, abi.Code) {
	body, code := h.Process.Call(Op(op), req)
	return body, abi.Code(code)
}

// Close forgets a handle.
func (h processHost) Close(handle int32) { h.Process.Close(handle) }

// Submit starts an op.
func (h processHost) Submit(op abi.Op, req []byte) int64 { return h.Process.Submit(Op(op), req) }

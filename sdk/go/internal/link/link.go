// Package link owns the seam between the SDK and whatever plays the host: the
// imports of a Wasm module, or the test driver. It must not know what a turn
// is made of.
package link

import (
	"time"

	"skep/sdk/go/internal/abi"
)

// Host is what an agent's turn reaches through the boundary. It serves one
// goroutine at a time.
type Host interface {
	// Input returns the whole input of the call.
	Input() []byte
	// Output appends to the output of the call.
	Output(data []byte) abi.Code
	// Call runs an op. A failed op gives its code and the JSON body of the
	// error. The bytes are valid until the next call.
	Call(op abi.Op, req []byte) ([]byte, abi.Code)
	// Submit starts an op: a handle, or minus a code. Wait gives the lowest index
	// of a handle that is ready, Read the number of bytes read, 0 at the end;
	// negative, they are minus a code. Close forgets a handle.
	Submit(op abi.Op, req []byte) int64
	Wait(handles []int32, timeoutMS int32) int32
	Read(handle int32, to []byte) int64
	Close(handle int32)
	// LastError is the JSON body of the last of these errors. The bytes are
	// valid until the next call.
	LastError() []byte
	// Now reads the turn's clock, and Sleep moves it.
	Now() time.Time
	Sleep(d time.Duration)
}

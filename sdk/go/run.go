// Package skep owns what an agent's author writes against: an agent is a type
// with a Turn method, registered once with [Run]. It must not know how a host
// stores or routes anything.
//
//	type Greeter struct{}
//
//	func (Greeter) Turn(t *skep.Turn) error {
//		return t.SendResponse(t.Message.Sender.Name, "Hello", "Hello, "+t.Message.Body)
//	}
//
//	var _ = skep.Run(skep.Descriptor{Name: "greeter", Version: "1.0.0"}, Greeter{})
//
//	func main() {}
//
// Build it with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w' -o greeter.wasm .
//
// Every turn runs in a fresh copy of the module's memory: package variables do
// not last. What must last goes into the turn's state, see [Turn.SetState].
package skep

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"skep/sdk/go/internal/abi"
	"skep/sdk/go/internal/link"
)

// Agent handles one message per call. Returning an error discards everything
// the turn did, and the host tells the sender; a panic does the same.
type Agent interface {
	Turn(t *Turn) error
}

// Warmer is an [Agent] that prepares itself before the host takes the image
// from which all turns start: templates, tables, caches. Nothing about a
// tenant, a task or the time is known then, and no op but log is granted.
type Warmer interface {
	Agent
	Warm() error
}

// Actor is an [Agent] whose module also exports the actions its descriptor
// lists. Each call runs in a fresh copy of the module's memory, never in the
// caller's.
type Actor interface {
	Agent
	// Action answers one call with a value that encodes as JSON.
	Action(c *ActionCall) (any, error)
}

// Registered is what [Run] returns, so that it can stand in a var declaration.
type Registered struct{}

// module is what this Wasm module registered; the exported functions find it
// here, since a reactor has no other way to hand it over.
var module struct {
	descriptor Descriptor
	agent      Agent
}

// Run registers the module's agent. Call it once, in a package-level var
// declaration of package main: main itself does not run.
func Run(d Descriptor, a Agent) Registered {
	if module.agent != nil {
		panic("skep.Run: called twice; a module registers one agent")
	}
	if a == nil || d.Name == "" || d.Version == "" {
		panic("skep.Run: an agent and the descriptor's Name and Version are mandatory")
	}
	module.descriptor, module.agent = d, a
	return Registered{}
}

// describe writes the registered descriptor.
func describe(h link.Host) abi.Status {
	if module.agent == nil {
		return abi.StatusNotImplemented
	}
	out, err := module.descriptor.encode()
	if err != nil {
		h.Output(encodeError(err))
		return abi.StatusError
	}
	return outcome(h, out, nil)
}

// spareHeap is memory that an image has free, so that small turns do not grow
// theirs: a host does not use an instance again that has grown.
const spareHeap = 1 << 20

// warm prepares the module for the image: the SDK's own part, then the agent's
// if it has one. What both leave behind as garbage is collected, so that no
// turn has to. The collection also takes the memory from the allocator that it
// had at hand; one more rehearsal gives it some, or every turn would fetch its own.
func warm(h link.Host) abi.Status {
	if module.agent == nil {
		return abi.StatusNotImplemented
	}
	rehearse()
	var err error
	if w, ok := module.agent.(Warmer); ok {
		err = w.Warm()
	}
	spare := make([]byte, spareHeap)
	runtime.KeepAlive(spare)
	runtime.GC()
	rehearse()
	return outcome(h, nil, err)
}

// Drive runs one turn of an agent against a host. It is the seam for package
// skeptest and the module's own export; agents do not call it.
func Drive(h link.Host, a Agent) int32 {
	if a == nil {
		return int32(abi.StatusNotImplemented)
	}
	t, err := newTurn(h)
	if err != nil {
		return int32(outcome(h, nil, err))
	}
	if err := a.Turn(t); err != nil {
		return int32(outcome(h, nil, err))
	}
	out, err := t.result()
	return int32(outcome(h, out, err))
}

// outcome writes a call's output, or its error.
func outcome(h link.Host, out []byte, err error) abi.Status {
	if err == nil && len(out) > 0 {
		if code := h.Output(out); code != abi.CodeOK {
			err = Errorf(Code(code), "the host refused an output of %d bytes", len(out))
		}
	}
	if err != nil {
		h.Output(encodeError(err))
		return abi.StatusError
	}
	return abi.StatusOK
}

// maxPanic bounds the text of a panic that goes to the host.
const maxPanic = 3 << 10

// panicText renders a recovered panic with the frames of the agent's code.
func panicText(v any, stack []byte) string {
	text := fmt.Sprintf("panic: %v\n%s", v, trimStack(string(stack)))
	if len(text) > maxPanic {
		text = text[:maxPanic]
	}
	return strings.ToValidUTF8(text, "")
}

// trimStack drops the frames above the panic: they are the SDK's and the
// runtime's own.
func trimStack(stack string) string {
	if _, below, ok := strings.Cut(stack, "\npanic("); ok {
		if _, rest, ok := strings.Cut(below, "\n\t"); ok {
			if _, frames, ok := strings.Cut(rest, "\n"); ok {
				return frames
			}
		}
	}
	return stack
}

// guard turns a panic of the agent into the host's abort, which ends the turn
// with the message. It is the one place where panics are recovered.
func guard(abort func(code abi.Code, message string), call func() abi.Status) abi.Status {
	defer func() {
		if v := recover(); v != nil {
			abort(abi.CodeInternal, panicText(v, debug.Stack()))
		}
	}()
	return call()
}

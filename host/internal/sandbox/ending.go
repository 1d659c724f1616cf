package sandbox

import (
	"fmt"

	"skep/abi"
)

// The ends of a turn that are the same at both levels of isolation.

// Ending is how a turn or an action ended that returned a status and wrote an
// output: nil when it ended well. The name is that of what was called.
func Ending(name string, status abi.Status, output []byte) *Exit {
	if status != abi.StatusOK {
		return failedExit(name, status, output)
	}
	check := checkOutput
	if name == abi.ExportAction {
		check = checkAnswer
	}
	if err := check(output); err != nil {
		return &Exit{Kind: ExitFailed, Message: err.Error()}
	}
	return nil
}

func failedExit(name string, status abi.Status, output []byte) *Exit {
	if status == abi.StatusNotImplemented {
		return &Exit{Kind: ExitFailed, Message: name + " is not implemented by this module"}
	}
	return &Exit{Kind: ExitFailed, Message: guestError(output)}
}

// OutputExit ends a turn that wrote more than it may.
func OutputExit(l Limits) *Exit {
	return &Exit{Kind: ExitOutput, Limit: keyOutput, Message: fmt.Sprintf("wrote more than %d bytes of output", l.Output)}
}

// AbortExit ends a turn that gave up.
func AbortExit(code abi.Code, message string) *Exit {
	return &Exit{Kind: ExitAbort, Message: code.String() + ": " + clip(message, maxGuestAbort)}
}

// GraceExit ends a turn that went on after it was called off.
func GraceExit(l Limits) *Exit {
	return &Exit{Kind: ExitCancelled, Limit: keyGrace, Message: fmt.Sprintf(
		"%v, and did not end within %v", errCalledOff, l.Grace), Cause: errCalledOff}
}

// MemoryExit ends a turn whose process took more memory than it may.
func MemoryExit(text string) *Exit {
	return &Exit{Kind: ExitMemory, Limit: keyMemory, Message: text}
}

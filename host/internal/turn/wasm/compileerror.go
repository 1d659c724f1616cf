package wasm

import (
	"errors"
	"fmt"
	"syscall"
)

// CompileError is why a module could not be compiled when the module is not at
// fault: a full disk, a compiler that was killed.
type CompileError struct {
	Name string // of the module
	// Dir is the compile cache, if it is at fault.
	Dir string
	Err error
}

// Error names the module, the reason and, for a cache, what to do.
func (e *CompileError) Error() string {
	text := fmt.Sprintf("module %s could not be compiled: %v", e.Name, e.Err)
	if e.Dir != "" {
		text += fmt.Sprintf("; the compile cache is %s: it must be writable and its disk not full, and it may be removed at any time", e.Dir)
	}
	return text
}

// Unwrap returns the reason.
func (e *CompileError) Unwrap() error { return e.Err }

// errInvalid marks the errors of compiling that are the module's fault.
var errInvalid = errors.New("the module is not valid WebAssembly")

// classifyCompileError adds errInvalid to an error of the compiler, unless it is an
// error of the system.
func classifyCompileError(err error) error {
	var system syscall.Errno
	if err == nil || errors.As(err, &system) {
		return err
	}
	return fmt.Errorf("%w; %w", err, errInvalid)
}

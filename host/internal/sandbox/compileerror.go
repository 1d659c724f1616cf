package sandbox

import (
	"errors"
	"fmt"
	"syscall"
)

// CompileError says that a module could not be compiled for a reason that is not
// the module's: a full disk, a compiler that somebody killed.
type CompileError struct {
	Name string // of the module
	// Dir is the compile cache where the fault is with that.
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

// errInvalid is what is wrong with a module that cannot be compiled.
var errInvalid = errors.New("the module is not valid WebAssembly")

// judged tells, of what compiling answers, the system's errors from the module's.
func judged(err error) error {
	var system syscall.Errno
	if err == nil || errors.As(err, &system) {
		return err
	}
	return fmt.Errorf("%w; %w", err, errInvalid)
}

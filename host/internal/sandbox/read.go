package sandbox

import (
	"errors"
	"io/fs"

	"skep/host/internal/guard"
	"skep/host/internal/wasmbin"
)

// ReadModule reads a module's file, as much as caps admit. What others could
// replace is a *guard.Error, what is not there fs.ErrNotExist, everything else a
// *LoadError.
func ReadModule(name, path string, caps wasmbin.Caps) ([]byte, error) {
	wasm, err := guard.ReadFile(path, caps.Size)
	return wasm, unread(name, err)
}

// ReadAnyModule is ReadModule for who only looks at a module: others may be able
// to replace it.
func ReadAnyModule(name, path string, caps wasmbin.Caps) ([]byte, error) {
	wasm, err := guard.ReadAny(path, caps.Size)
	return wasm, unread(name, err)
}

// unread makes a refusal of a file that cannot be read.
func unread(name string, err error) error {
	var large *guard.SizeError
	var weak *guard.Error
	var refused *LoadError
	switch {
	case err == nil, errors.As(err, &weak), errors.Is(err, fs.ErrNotExist):
		return err
	case errors.As(err, &large):
		refused = refusal(StepAdmit, &wasmbin.CapError{Cap: "size", Got: uint64(large.Size), Limit: uint64(large.Max)})
	default:
		refused = refusal(StepRead, err)
	}
	refused.Name = name
	return refused
}

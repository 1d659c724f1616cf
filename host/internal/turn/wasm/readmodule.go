package wasm

import (
	"errors"
	"io/fs"

	"skep/host/internal/pathcheck"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// ReadModule reads a module's file, at most as many bytes as caps admit. The error is
// a *pathcheck.Error for a file that other users could replace, fs.ErrNotExist for a
// missing one, and a *turn.LoadError else.
func ReadModule(name, path string, caps binary.Caps) ([]byte, error) {
	wasm, err := pathcheck.ReadFile(path, caps.Size)
	return wasm, AsLoadError(name, err)
}

// ReadAnyModule is ReadModule for inspecting a module that is not run: other users
// may be able to replace the file.
func ReadAnyModule(name, path string, caps binary.Caps) ([]byte, error) {
	wasm, err := pathcheck.ReadAny(path, caps.Size)
	return wasm, AsLoadError(name, err)
}

// AsLoadError returns the error of [ReadModule] for a module that cannot be read: one that is too large, a
// [*pathcheck.SizeError], is refused as by its cap.
func AsLoadError(name string, err error) error {
	var large *pathcheck.SizeError
	var weak *pathcheck.Error
	var refused *turn.LoadError
	switch {
	case err == nil, errors.As(err, &weak), errors.Is(err, fs.ErrNotExist):
		return err
	case errors.As(err, &large):
		refused = newLoadError(turn.StepAdmit, &binary.CapError{Cap: "size", Got: uint64(large.Size), Limit: uint64(large.Max)})
	default:
		refused = newLoadError(turn.StepRead, err)
	}
	refused.Name = name
	return refused
}

package fileaction

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"skep/abi"
)

func fail(code abi.Code, reason, format string, a ...any) *abi.Error {
	return abi.Errorf(code, abi.OpAction, reason, format, a...)
}

func notFound(p string) *abi.Error {
	return fail(abi.CodeNotFound, "path", "there is no %.100q", p)
}

// contextError is the error of a call whose context is done.
func contextError(ctx context.Context) *abi.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fail(abi.CodeDeadline, "timeout", "it took longer than its timeout")
	}
	return fail(abi.CodeCancelled, "cancelled", "the call was called off")
}

// escapesPrefix begins the error of [os.Root] for a link that leads out. The package
// exports no value to compare with.
const escapesPrefix = "path escapes"

// fsError converts an error of the file system. It names only the caller's path: the place
// of the directory is the operator's secret.
func fsError(p string, err error) *abi.Error {
	err = stripPaths(err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notFound(p)
	case errors.Is(err, fs.ErrExist):
		return fail(abi.CodeConflict, "path", "%.100q is there already", p)
	case errors.Is(err, fs.ErrPermission):
		return fail(abi.CodeDenied, "path", "the host may not do that with %.100q", p)
	case strings.HasPrefix(err.Error(), escapesPrefix):
		return fail(abi.CodeDenied, "path", "%.100q leads out of the directory", p)
	}
	return fail(abi.CodeUpstream, "path", "%.100q: %v", p, err)
}

// stripPaths removes the paths from an error.
func stripPaths(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	var between *os.LinkError
	if errors.As(err, &between) {
		return between.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}

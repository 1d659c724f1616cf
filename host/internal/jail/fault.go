package jail

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

func absent(p string) *abi.Error {
	return fail(abi.CodeNotFound, "path", "there is no %.100q", p)
}

// late is the fault of a call whose time is over.
func late(ctx context.Context) *abi.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fail(abi.CodeDeadline, "timeout", "it took longer than its timeout")
	}
	return fail(abi.CodeCancelled, "cancelled", "the call was called off")
}

// escapes is how [os.Root] begins to say that a link leads out of it. There is no
// value to compare with.
const escapes = "path escapes"

// wrong says what the file system has against a name. Where the directory lies is
// the operator's to know: messages have the caller's path alone.
func wrong(p string, err error) *abi.Error {
	err = plainly(err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent(p)
	case errors.Is(err, fs.ErrExist):
		return fail(abi.CodeConflict, "path", "%.100q is there already", p)
	case errors.Is(err, fs.ErrPermission):
		return fail(abi.CodeDenied, "path", "the host may not do that with %.100q", p)
	case strings.HasPrefix(err.Error(), escapes):
		return fail(abi.CodeDenied, "path", "%.100q leads out of the directory", p)
	}
	return fail(abi.CodeUpstream, "path", "%.100q: %v", p, err)
}

// plainly drops the paths of an error.
func plainly(err error) error {
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

package jail

import (
	"context"
	"encoding/base64"
	"io"
	"os"
	"syscall"
	"unicode/utf8"

	"skep/abi"
)

// bytesOf is how an answer shows what is no text.
type bytesOf struct {
	Encoding string `json:"encoding"`
	Content  string `json:"content"`
}

const base64Encoding = "base64"

// readFile answers with a text, or with base64 for what is none.
func readFile(j *Jail, ctx context.Context, root *os.Root, _ Call, a args) (any, *abi.Error) {
	is, err := root.Stat(a.Path)
	switch {
	case err != nil:
		return nil, wrong(a.Path, err)
	case is.IsDir():
		return nil, fail(abi.CodeInvalid, "path", "%.100q is a directory; read_directory lists it", a.Path)
	case !is.Mode().IsRegular():
		return nil, irregular(a.Path)
	}
	f, fault := j.open(root, a.Path, os.FileMode.IsRegular)
	if fault != nil {
		return nil, fault
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(patient{ctx, f}, j.opt.MaxFile+1))
	switch {
	case ctx.Err() != nil:
		return nil, late(ctx)
	case err != nil:
		return nil, wrong(a.Path, err)
	case int64(len(raw)) > j.opt.MaxFile:
		return nil, fail(abi.CodeLimit, "max_file", "%.100q has more than %d bytes; %s max_file allows more", a.Path, j.opt.MaxFile, j.opt.Table)
	case !utf8.Valid(raw):
		return bytesOf{base64Encoding, base64.StdEncoding.EncodeToString(raw)}, nil
	}
	return string(raw), nil
}

func irregular(p string) *abi.Error {
	return fail(abi.CodeDenied, "path", "%.100q is neither a file nor a directory", p)
}

// open opens what is there to be read. What it was a moment ago may be a pipe by
// now: opening one must not wait for its writer, and nothing is read of it.
func (j *Jail) open(root *os.Root, p string, kind func(os.FileMode) bool) (*os.File, *abi.Error) {
	f, err := root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, wrong(p, err)
	}
	is, err := f.Stat()
	if err == nil && kind(is.Mode()) {
		return f, nil
	}
	_ = f.Close()
	if err != nil {
		return nil, wrong(p, err)
	}
	return nil, irregular(p)
}

// patient reads until a call's time is over.
type patient struct {
	ctx context.Context
	io.Reader
}

func (r patient) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

package fileaction

import (
	"context"
	"encoding/base64"
	"io"
	"os"
	"syscall"
	"unicode/utf8"

	"skep/abi"
)

// encodedContent is the answer for a file that is not text.
type encodedContent struct {
	Encoding string `json:"encoding"`
	Content  string `json:"content"`
}

const base64Encoding = "base64"

// readFile returns the text of a file, or base64 if it is not UTF-8.
func readFile(d *Directory, ctx context.Context, root *os.Root, _ Call, a args) (any, *abi.Error) {
	info, err := root.Stat(a.Path)
	switch {
	case err != nil:
		return nil, fsError(a.Path, err)
	case info.IsDir():
		return nil, fail(abi.CodeInvalid, "path", "%.100q is a directory; read_directory lists it", a.Path)
	case !info.Mode().IsRegular():
		return nil, irregular(a.Path)
	}
	f, fault := d.openChecked(root, a.Path, os.FileMode.IsRegular)
	if fault != nil {
		return nil, fault
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(contextReader{ctx, f}, d.opt.MaxFile+1))
	switch {
	case ctx.Err() != nil:
		return nil, contextError(ctx)
	case err != nil:
		return nil, fsError(a.Path, err)
	case int64(len(raw)) > d.opt.MaxFile:
		return nil, fail(abi.CodeLimit, "max_file", "%.100q has more than %d bytes; %s max_file allows more", a.Path, d.opt.MaxFile, d.opt.Table)
	case !utf8.Valid(raw):
		return encodedContent{base64Encoding, base64.StdEncoding.EncodeToString(raw)}, nil
	}
	return string(raw), nil
}

func irregular(p string) *abi.Error {
	return fail(abi.CodeDenied, "path", "%.100q is neither a file nor a directory", p)
}

// openChecked opens a file for reading and checks its type again. The file may have become
// a pipe since it was checked: opening must not wait for a writer, and a pipe is not read.
func (d *Directory) openChecked(root *os.Root, p string, kind func(os.FileMode) bool) (*os.File, *abi.Error) {
	f, err := root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fsError(p, err)
	}
	info, err := f.Stat()
	if err == nil && kind(info.Mode()) {
		return f, nil
	}
	_ = f.Close()
	if err != nil {
		return nil, fsError(p, err)
	}
	return nil, irregular(p)
}

// contextReader reads until the context is done.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

package pathcheck

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// UnfitError: a path leads to nothing that is read as a file.
type UnfitError struct {
	Path   string
	Reason string // as in "is not a regular file: it is a directory"
}

// Error names the path and the reason.
func (e *UnfitError) Error() string { return e.Path + " " + e.Reason }

// SizeError: a file is larger than its reader takes.
type SizeError struct {
	Path string
	// Size is the file's, and Max what is taken, in bytes. Of a file that says
	// less than it holds, Size is Max and one.
	Size, Max int64
}

// Error names the file and both sizes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, at most %d are read", e.Path, e.Size, e.Max)
}

// ReadFile reads a regular file of at most most bytes, unless others could
// replace it: then it returns an *Error. The bytes are of the file that was
// judged. What is larger is a *SizeError and not read; what is no file, and would
// make its reader wait, is an *UnfitError and not opened.
func ReadFile(path string, most int64) ([]byte, error) { return current().readFile(path, most) }

// ReadAny is ReadFile for who only looks at a file: it may be anybody's.
func ReadAny(path string, most int64) ([]byte, error) {
	f, _, err := current().open(path, anybodys)
	if err != nil {
		return nil, err
	}
	return read(f, path, most)
}

// File returns an *Error if others could replace a regular file.
func File(path string) error {
	f, _, err := current().open(path, given)
	if err != nil {
		return err
	}
	return f.Close()
}

// OpenOwn opens a regular file that skep keeps for itself: unlike
// ReadFile's it must not be writable for any group. The caller closes it.
func OpenOwn(path string) (*os.File, fs.FileInfo, error) { return current().open(path, own) }

func (u user) readFile(path string, most int64) ([]byte, error) {
	f, _, err := u.open(path, given)
	if err != nil {
		return nil, err
	}
	return read(f, path, most)
}

// read reads a file to its end and closes it.
func read(f *os.File, path string, most int64) (_ []byte, err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, &SizeError{Path: path, Size: info.Size(), Max: most}
	}
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > most {
		return nil, &SizeError{Path: path, Size: int64(len(raw)), Max: most}
	}
	return raw, nil
}

// requirement is what a file must bear.
type requirement int

const (
	anybodys requirement = iota // it is not judged
	given                       // nobody else could replace it
	own                         // nor has anybody else a reason to
)

// open opens a regular file once it is known to be one, since opening a pipe or
// a device may wait or do things.
func (u user) open(path string, c requirement) (*os.File, fs.FileInfo, error) {
	w, err := u.walk(path)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case w.missing:
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	case w.file == "":
		return nil, nil, unfit(path, fs.ModeDir)
	case !w.kind.IsRegular():
		return nil, nil, unfit(path, w.kind)
	}
	f, err := os.OpenFile(w.file, openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = unfit(path, info.Mode())
	}
	if err == nil && c != anybodys {
		w.add(w.file, info)
		w.last().own = c == own
		err = w.verdict(path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// unfit names what lies where a file is looked for.
func unfit(path string, kind fs.FileMode) error {
	what := "a special file"
	switch {
	case kind.IsDir():
		what = "a directory"
	case kind&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case kind&fs.ModeDevice != 0:
		what = "a device"
	case kind&fs.ModeSocket != 0:
		what = "a socket"
	}
	return &UnfitError{Path: path, Reason: "is not a regular file: it is " + what}
}

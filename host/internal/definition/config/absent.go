package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"skep/host/internal/spelling"
)

// absentFile is a path of the file at which nothing is.
type absentFile struct{ full string }

func (e *absentFile) Error() string { return "does not exist: nothing is at " + e.full }

// suggestFile suggests the file that a missing one probably stands for. ref is the path
// as written, after its prefix.
func (f *Fault) suggestFile(err error, prefix, ref string) {
	var absent *absentFile
	if f == nil || !errors.As(err, &absent) {
		return
	}
	if near := NearFile(absent.full); near != "" {
		f.Suggestion = prefix + filepath.ToSlash(filepath.Join(filepath.Dir(filepath.FromSlash(ref)), near))
	}
}

// maxEntries bounds the search for a near name in a directory.
const maxEntries = 1000

// NearFile returns the name in the directory of a missing file that the file's own most
// probably stands for, empty for none.
func NearFile(path string) string {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return ""
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(maxEntries)
	if err != nil {
		return ""
	}
	return spelling.Nearest(filepath.Base(path), names)
}

// isFile returns why a path is no regular file, nil if it is one.
func isFile(full string) error {
	info, err := os.Stat(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &absentFile{full}
	case err != nil:
		return fmt.Errorf("cannot be read: %w", reason(err))
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	}
	return nil
}

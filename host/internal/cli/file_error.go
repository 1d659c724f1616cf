package cli

import (
	"errors"
	"io/fs"
	"os"
)

// unusableFile explains why a file or directory that a command line names cannot be read,
// written or made: done is that word.
func unusableFile(path, done string, err error) error {
	if done == "read" && errors.Is(err, fs.ErrNotExist) {
		return failf(exitNotFound, "there is no file %s", resolvedPath(path))
	}
	var known *failure
	if errors.As(err, &known) {
		return err
	}
	var onPath *fs.PathError
	var onLink *os.LinkError
	cause := err
	switch {
	case errors.As(err, &onPath):
		cause = onPath.Err
	case errors.As(err, &onLink):
		cause = onLink.Err
	}
	f := failf(exitFailed, "%s cannot be %s: %w", resolvedPath(path), done, cause)
	info, stat := os.Stat(path)
	switch {
	case stat == nil && info.IsDir() && done != "made":
		return f.help("%s is a directory: name a file", path)
	case errors.Is(err, fs.ErrPermission):
		return f.help("give the user of this command the right to it, and to the directories above it")
	}
	return f
}

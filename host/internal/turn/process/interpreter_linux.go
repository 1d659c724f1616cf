package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// checkInterpreter returns why a script's interpreter could not run, and nil for a
// binary. Each link on the way to it must be readable as well, because nothing else
// has a path in the process's root directory.
func checkInterpreter(src Source) *startError {
	script := scriptInterpreter(src.Program)
	if script == "" {
		return nil
	}
	steps, err := followLinks(script)
	if errors.Is(err, fs.ErrNotExist) {
		return &startError{reason: fmt.Sprintf("its interpreter %s is not there; its first line names it", script)}
	}
	if err != nil {
		return &startError{reason: fmt.Sprintf("its interpreter %s cannot be looked at: %v", script, err)}
	}
	allowed := slices.Concat(systemDirs[:], src.Read)
	var missing []string
	for _, path := range steps {
		dir := installDir(path)
		if !slices.ContainsFunc(allowed, func(in string) bool { return contains(in, path) }) && !slices.Contains(missing, strconv.Quote(dir)) {
			missing = append(missing, strconv.Quote(dir))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &startError{
		reason: fmt.Sprintf("it may not run its interpreter %s; add %s to readable", script, strings.Join(missing, " and ")), key: keyReadable,
	}
}

// maxInterpreterLinks bounds the links on the way to an interpreter, as the kernel does.
const maxInterpreterLinks = 40

// followLinks returns a path and what each link leads to, the file itself last.
func followLinks(path string) (steps []string, err error) {
	for range maxInterpreterLinks {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		if path != filepath.Join(dir, filepath.Base(path)) {
			steps = append(steps, path)
		}
		path = filepath.Join(dir, filepath.Base(path))
		steps = append(steps, path)
		to, err := os.Readlink(path)
		if err != nil {
			_, err = os.Stat(path) // no link
			return steps, err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return nil, fmt.Errorf("more than %d links", maxInterpreterLinks)
}

// installDir returns the directory that a program was installed in: the parent of bin.
func installDir(path string) string {
	dir := filepath.Dir(path)
	if filepath.Base(dir) == "bin" {
		return filepath.Dir(dir)
	}
	return dir
}

// contains reports whether a path is a file or lies in a directory, with or without
// the links in the directory's own path.
func contains(in, path string) bool {
	real, err := filepath.EvalSymlinks(in)
	if err != nil {
		real = in
	}
	return slices.ContainsFunc([]string{in, real}, func(in string) bool {
		rel, err := filepath.Rel(in, path)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
	})
}

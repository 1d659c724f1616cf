package fileaction

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"skep/abi"
	"skep/host/internal/store/atomicfile"
)

// maxListed bounds the number of names in a listed directory.
const maxListed = 1000

// readDirectory returns the sorted names, one per line. Names of directories end with a
// slash.
func readDirectory(d *Directory, _ context.Context, root *os.Root, _ Call, a args) (any, *abi.Error) {
	info, err := root.Stat(a.Path)
	switch {
	case err != nil:
		return nil, fsError(a.Path, err)
	case !info.IsDir():
		return nil, fail(abi.CodeInvalid, "path", "%.100q is not a directory", a.Path)
	}
	f, fault := d.openChecked(root, a.Path, os.FileMode.IsDir)
	if fault != nil {
		return nil, fault
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(maxListed + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fsError(a.Path, err)
	}
	if len(entries) > maxListed {
		return nil, fail(abi.CodeLimit, "entries", "%.100q has more than %d names, too many to be listed", a.Path, maxListed)
	}
	names := []string{}
	for _, e := range entries {
		switch name := displayName(e.Name()); {
		case strings.HasPrefix(e.Name(), partPrefix):
		case e.IsDir():
			names = append(names, name+"/")
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "\n"), nil
}

// displayName returns a name that fits on one line. A name that does not, or that no path
// can contain, is quoted.
func displayName(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// createDirectory creates a directory and its parents.
func createDirectory(d *Directory, ctx context.Context, root *os.Root, c Call, a args) (any, *abi.Error) {
	done := "successfully created directory at " + a.Path
	if info, err := root.Lstat(a.Path); err == nil {
		if c.Retry && info.IsDir() {
			return done, nil
		}
		return nil, fsError(a.Path, os.ErrExist)
	}
	if fault := d.checkQuota(ctx, root, a.Path, 0, depth(a.Path)); fault != nil {
		return nil, fault
	}
	if err := root.MkdirAll(a.Path, dirMode); err != nil {
		return nil, fsError(a.Path, err)
	}
	if err := syncDirectory(root, path.Dir(a.Path)); err != nil {
		return nil, fsError(a.Path, err)
	}
	return done, nil
}

// syncDirectory makes the entries of a directory durable.
func syncDirectory(root *os.Root, p string) error {
	return atomicfile.SyncDir(root.Open(p))
}

package jail

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
)

// maxListed is how many names a directory may have that is listed.
const maxListed = 1000

// readDirectory answers with the names, one a line, in order. Those of directories
// end with a slash.
func readDirectory(j *Jail, _ context.Context, root *os.Root, _ Call, a args) (any, *abi.Error) {
	is, err := root.Stat(a.Path)
	switch {
	case err != nil:
		return nil, wrong(a.Path, err)
	case !is.IsDir():
		return nil, fail(abi.CodeInvalid, "path", "%.100q is not a directory", a.Path)
	}
	f, fault := j.open(root, a.Path, os.FileMode.IsDir)
	if fault != nil {
		return nil, fault
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(maxListed + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, wrong(a.Path, err)
	}
	if len(entries) > maxListed {
		return nil, fail(abi.CodeLimit, "entries", "%.100q has more than %d names, too many to be listed", a.Path, maxListed)
	}
	names := []string{}
	for _, e := range entries {
		switch name := shown(e.Name()); {
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

// shown is a name on a line of its own. One that would make more of it, or could not
// be asked for, is quoted.
func shown(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// createDirectory makes a directory and those above it.
func createDirectory(j *Jail, ctx context.Context, root *os.Root, c Call, a args) (any, *abi.Error) {
	done := "successfully created directory at " + a.Path
	if is, err := root.Lstat(a.Path); err == nil {
		if c.Again && is.IsDir() {
			return done, nil
		}
		return nil, wrong(a.Path, os.ErrExist)
	}
	if fault := j.room(ctx, root, a.Path, 0, depth(a.Path)); fault != nil {
		return nil, fault
	}
	if err := root.MkdirAll(a.Path, dirMode); err != nil {
		return nil, wrong(a.Path, err)
	}
	if err := lasts(root, path.Dir(a.Path)); err != nil {
		return nil, wrong(a.Path, err)
	}
	return done, nil
}

// lasts makes the names in a directory last.
func lasts(root *os.Root, p string) error {
	dir, err := root.Open(p)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

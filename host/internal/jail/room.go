package jail

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"skep/abi"
)

// maxEntries is how many files and directories a tenant may have.
const maxEntries = 10_000

// leftFor is how long a part is kept that nobody seems to write on: its host has
// died, and may come back to it.
const leftFor = time.Hour

var errFull = errors.New("full")

// room refuses what would be too much of the tenant's, in bytes or in names: more
// bytes, and as many names as are new.
func (j *Jail) room(ctx context.Context, root *os.Root, p string, more int64, names int) *abi.Error {
	size, entries := more, names-1 // the directory itself is none
	err := fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid):
			return nil // somebody else's, gone by now, or of a name that is no text
		case err != nil:
			return err
		}
		if entries++; entries > j.names && names > 0 {
			return errFull
		}
		is, err := e.Info()
		if err != nil || !is.Mode().IsRegular() {
			return nil
		}
		if strings.HasPrefix(e.Name(), partPrefix) && time.Since(is.ModTime()) > leftFor {
			return remove(root, name)
		}
		size += is.Size()
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return late(ctx)
	case errors.Is(err, errFull):
		return fail(abi.CodeLimit, "entries", "the directory has %d files and directories, the most there may be", j.names)
	case err != nil:
		return wrong(p, err)
	case more > 0 && size > j.opt.MaxTotal:
		return fail(abi.CodeLimit, "max_total", "all files together would have %d bytes, at most %d; %s max_total allows more", size, j.opt.MaxTotal, j.opt.Table)
	}
	return nil
}

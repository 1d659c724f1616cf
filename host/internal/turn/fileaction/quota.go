package fileaction

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"skep/abi"
)

// maxEntries bounds the files and directories of a tenant.
const maxEntries = 10_000

// abandonedPartAge is the age at which an unfinished file is removed. Its host has died,
// and may come back to it earlier.
const abandonedPartAge = time.Hour

var errFull = errors.New("full")

// checkQuota refuses a change that adds too many bytes or too many names.
func (d *Directory) checkQuota(ctx context.Context, root *os.Root, p string, more int64, names int) *abi.Error {
	size, entries := more, names-1 // the directory itself does not count
	err := fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid):
			return nil // not ours, already gone, or not valid UTF-8
		case err != nil:
			return err
		}
		if entries++; entries > d.maxEntries && names > 0 {
			return errFull
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		if strings.HasPrefix(e.Name(), partPrefix) && time.Since(info.ModTime()) > abandonedPartAge {
			return remove(root, name)
		}
		size += info.Size()
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return contextError(ctx)
	case errors.Is(err, errFull):
		return fail(abi.CodeLimit, "entries", "the directory has %d files and directories, the most there may be", d.maxEntries)
	case err != nil:
		return fsError(p, err)
	case more > 0 && size > d.opt.MaxTotal:
		return fail(abi.CodeLimit, "max_total", "all files together would have %d bytes, at most %d; %s max_total allows more", size, d.opt.MaxTotal, d.opt.Table)
	}
	return nil
}

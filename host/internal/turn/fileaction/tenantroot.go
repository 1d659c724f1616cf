package fileaction

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"skep/abi"
)

// Modes of new files. Only the host's user can read what agents write.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// openTenantRoot opens the tenant's directory. It returns nil if the directory does not
// exist and create is false.
func (d *Directory) openTenantRoot(tenant string, create bool) (*os.Root, *abi.Error) {
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return nil, d.rootError(err)
	}
	if info, err := root.Stat("."); err != nil || !os.SameFile(info, d.info) {
		_ = root.Close()
		return nil, d.rootError(err)
	}
	if d.opt.Shared {
		return root, nil
	}
	defer func() { _ = root.Close() }()
	if !isDirectoryName(tenant) {
		return nil, fail(abi.CodeDenied, "tenant", "a tenant of this name can have no directory")
	}
	if create {
		if err := root.Mkdir(tenant, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fsError(".", err)
		}
	}
	info, err := root.Lstat(tenant)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fsError(".", err)
	case !info.IsDir():
		return nil, fail(abi.CodeDenied, "root", "the tenant's directory in the root of %s is none", d.opt.Table)
	}
	own, err := root.OpenRoot(tenant)
	if err != nil {
		return nil, fsError(".", err)
	}
	return own, nil
}

// rootError is the error of a root directory that is gone or was replaced.
func (d *Directory) rootError(err error) *abi.Error {
	if err != nil {
		return fail(abi.CodeUnavailable, "root", "the root of %s cannot be opened: %v", d.opt.Table, stripPaths(err))
	}
	return fail(abi.CodeDenied, "root", "the root of %s is not the directory that was there when the file was read; reload the file", d.opt.Table)
}

// isDirectoryName reports whether a tenant's name can name a directory.
func isDirectoryName(tenant string) bool {
	return tenant != "" && len(tenant) <= maxName && !strings.HasPrefix(tenant, ".") &&
		!strings.ContainsFunc(tenant, func(r rune) bool {
			return r >= 0x80 || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~-", r)
		})
}

// EraseTenant removes the directory of a tenant, and reports whether it existed. A shared
// directory stays.
func (d *Directory) EraseTenant(tenant string) (had bool, err error) {
	if d.opt.Shared || !isDirectoryName(tenant) {
		return false, nil
	}
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return false, stripPaths(err)
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Stat("."); err != nil || !os.SameFile(info, d.info) {
		return false, errors.Join(stripPaths(err), errors.New("the root is not the directory that was there when the file was read"))
	}
	if _, err := root.Lstat(tenant); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, stripPaths(root.RemoveAll(tenant))
}

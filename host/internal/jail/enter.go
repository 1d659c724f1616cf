package jail

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"skep/abi"
)

// Modes of what is new. Nobody but the host's user reads what agents write.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// enter opens what a tenant has of the directory. It is nil for a tenant that has
// nothing yet, unless it is to be made.
func (j *Jail) enter(tenant string, create bool) (*os.Root, *abi.Error) {
	root, err := os.OpenRoot(j.dir)
	if err != nil {
		return nil, j.gone(err)
	}
	if is, err := root.Stat("."); err != nil || !os.SameFile(is, j.is) {
		_ = root.Close()
		return nil, j.gone(err)
	}
	if j.opt.Shared {
		return root, nil
	}
	defer func() { _ = root.Close() }()
	if !named(tenant) {
		return nil, fail(abi.CodeDenied, "tenant", "a tenant of this name can have no directory")
	}
	if create {
		if err := root.Mkdir(tenant, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, wrong(".", err)
		}
	}
	is, err := root.Lstat(tenant)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, wrong(".", err)
	case !is.IsDir():
		return nil, fail(abi.CodeDenied, "root", "the tenant's directory in the root of %s is none", j.opt.Table)
	}
	own, err := root.OpenRoot(tenant)
	if err != nil {
		return nil, wrong(".", err)
	}
	return own, nil
}

// gone is the fault of a directory that is not what it was.
func (j *Jail) gone(err error) *abi.Error {
	if err != nil {
		return fail(abi.CodeUnavailable, "root", "the root of %s cannot be opened: %v", j.opt.Table, plainly(err))
	}
	return fail(abi.CodeDenied, "root", "the root of %s is not the directory that was there when the file was read; reload the file", j.opt.Table)
}

// named reports whether a tenant's name is also that of a directory.
func named(tenant string) bool {
	return tenant != "" && len(tenant) <= maxName && !strings.HasPrefix(tenant, ".") &&
		!strings.ContainsFunc(tenant, func(r rune) bool {
			return r >= 0x80 || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~-", r)
		})
}

// Erase removes what a tenant has, and reports whether there was anything. What is
// shared is nobody's.
func (j *Jail) Erase(tenant string) (had bool, err error) {
	if j.opt.Shared || !named(tenant) {
		return false, nil
	}
	root, err := os.OpenRoot(j.dir)
	if err != nil {
		return false, plainly(err)
	}
	defer func() { _ = root.Close() }()
	if is, err := root.Stat("."); err != nil || !os.SameFile(is, j.is) {
		return false, errors.Join(plainly(err), errors.New("the root is not the directory that was there when the file was read"))
	}
	if _, err := root.Lstat(tenant); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, plainly(root.RemoveAll(tenant))
}

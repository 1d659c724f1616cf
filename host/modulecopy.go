package host

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// copyModules copies the modules of a directory to another one, which is made if
// there are any. Those that are there are left alone. One that is not what its
// name says is left out; the error names each.
func copyModules(ctx context.Context, from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var faults []error
	for _, e := range entries {
		digest, ok := strings.CutSuffix(e.Name(), moduleSuffix)
		if !ok || !isDigest(digest) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		faults = append(faults, copyModule(modulePath(from, digest), modulePath(to, digest), digest))
	}
	return errors.Join(faults...)
}

// copyModule copies one module in pieces, as its size is its owner's choice. One
// that was dropped meanwhile is nobody's.
func copyModule(from, to, digest string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", from)
	}
	if err != nil {
		return err
	}
	part := to + "." + rand.Text() + partSuffix
	sum, err := copySum(from, part, info.Size())
	if err == nil && sum != digest {
		err = fmt.Errorf("module %s is damaged: its digest is not its name; remove it, and start a host whose swarm.toml still has the module", from)
	}
	if err == nil {
		err = os.Rename(part, to)
	}
	if err != nil {
		gone := os.Remove(part)
		if errors.Is(gone, fs.ErrNotExist) {
			gone = nil
		}
		return errors.Join(err, gone)
	}
	return syncDir(filepath.Dir(to))
}

// copySum copies size bytes to a new file and returns their digest.
func copySum(from, to string, size int64) (sum string, err error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, h), io.LimitReader(in, size))
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, out.Sync(), out.Close())
}

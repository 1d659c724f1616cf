package definition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"skep/host/internal/pathcheck"
	"skep/host/internal/store/atomicfile"
	"skep/host/internal/turn/wasm"
	"skep/host/internal/turn/wasm/binary"
)

// ModuleDir is a directory of modules in files named by their sha256 digests.
type ModuleDir string

// DataModules is the module directory of a data directory.
func DataModules(data string) ModuleDir { return ModuleDir(filepath.Join(data, "modules")) }

// moduleSuffix ends the name of a module's file.
const moduleSuffix = ".wasm"

func (d ModuleDir) path(digest string) string { return filepath.Join(string(d), digest+moduleSuffix) }

// Has reports whether there is a file of a module.
func (d ModuleDir) Has(digest string) bool {
	_, err := os.Lstat(d.path(digest))
	return err == nil
}

// size is the length of a module's file, 0 without one.
func (d ModuleDir) size(digest string) int64 {
	info, err := os.Lstat(d.path(digest))
	if err != nil {
		return 0
	}
	return info.Size()
}

// digests lists the modules in the directory.
func (d ModuleDir) digests() (list []string, err error) {
	entries, err := os.ReadDir(string(d))
	for _, e := range entries {
		if digest, ok := strings.CutSuffix(e.Name(), moduleSuffix); ok && isDigest(digest) {
			list = append(list, digest)
		}
	}
	return list, err
}

// isDigest reports whether a text is a sha256 digest in lower-case hexadecimal.
func isDigest(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size && strings.ToLower(s) == s
}

// errDamaged is returned for a file whose bytes are not the ones that its name promises.
var errDamaged = errors.New("is damaged")

// Read reads a module and compares it with its digest. A missing module is
// fs.ErrNotExist.
func (d ModuleDir) Read(digest string, caps binary.Caps) ([]byte, error) {
	if !isDigest(digest) {
		return nil, fmt.Errorf("%q is not the digest of a module", digest)
	}
	if err := pathcheck.Dir(string(d)); err != nil {
		return nil, err
	}
	path := d.path(digest)
	data, err := wasm.ReadModule(digest, path, caps)
	if err != nil {
		return nil, err
	}
	if digestOf(data) != digest {
		return nil, fmt.Errorf("%s %w: its digest is not its name; remove it, and start a host whose swarm.toml still has the module", path, errDamaged)
	}
	return data, nil
}

// CopyTo copies all modules to another directory, which is made if there are any. It
// leaves modules that are there alone. It skips damaged modules; the error names each.
func (d ModuleDir) CopyTo(ctx context.Context, to ModuleDir) error {
	digests, err := d.digests()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var faults []error
	for _, digest := range digests {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := os.Mkdir(string(to), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		faults = append(faults, d.copyModule(to, digest))
	}
	return errors.Join(faults...)
}

// copyModule copies one module. It streams, because the size of a module has no bound
// here. A module that was dropped meanwhile is no error.
func (d ModuleDir) copyModule(to ModuleDir, digest string) error {
	if to.Has(digest) {
		return nil
	}
	from := d.path(digest)
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
	return atomicfile.Create(to.path(digest), 0o400, func(w io.Writer) error {
		in, err := os.Open(from)
		if err != nil {
			return err
		}
		defer in.Close()
		sum := sha256.New()
		_, err = io.Copy(io.MultiWriter(w, sum), io.LimitReader(in, info.Size()))
		if err == nil && hex.EncodeToString(sum.Sum(nil)) != digest {
			err = fmt.Errorf("module %s is damaged: its digest is not its name; remove it, and start a host whose swarm.toml still has the module", from)
		}
		return err
	})
}

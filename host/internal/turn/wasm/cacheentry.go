package wasm

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

	"skep/host/internal/pathcheck"
)

// entry describes the file with a module's compiled code.
type entry struct {
	name string // of the file, beside the mark
	size int64
	sum  string
}

// markPath is where the mark of a module lies.
func (c *cache) markPath(metered []byte) string {
	sum := sha256.Sum256(metered)
	return filepath.Join(c.entries, "compiled-"+hex.EncodeToString(sum[:]))
}

// ensure makes sure that the cache has a module's code. Compile, called with a
// directory, leaves the code there.
func (c *cache) ensure(ctx context.Context, metered []byte, compile func(ctx context.Context, dir string) error) (err error) {
	if err := pathcheck.Dir(c.entries); err != nil {
		return err
	}
	why := c.check(metered)
	if why == nil {
		return nil
	}
	if !errors.Is(why, fs.ErrNotExist) {
		c.log.Warn("compiled code is not used, the module is compiled anew", "reason", why)
	}
	stage, err := os.MkdirTemp(c.dir, stagePrefix)
	if err != nil {
		return &CompileError{Dir: c.dir, Err: err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	if err := compile(ctx, stage); err != nil {
		var fault *CompileError
		if errors.As(err, &fault) && fault.Dir != "" {
			fault.Dir = c.dir
		}
		return err
	}
	if err := c.install(stage, metered); err != nil {
		return &CompileError{Dir: c.dir, Err: err}
	}
	return nil
}

// check returns nil if a module's code can be used, fs.ErrNotExist where there is
// none.
func (c *cache) check(metered []byte) error {
	want, err := c.readMark(metered)
	if err != nil {
		return err
	}
	is, err := readEntry(filepath.Join(c.entries, want.name))
	if err != nil {
		return err
	}
	if is != want {
		return fmt.Errorf("%s is not what was compiled", filepath.Join(c.entries, want.name))
	}
	return nil
}

const markForm = "%s %d %s\n"

// readMark reads a module's mark.
func (c *cache) readMark(metered []byte) (e entry, err error) {
	path := c.markPath(metered)
	f, _, err := pathcheck.OpenOwn(path)
	if err != nil {
		return e, err
	}
	_, err = fmt.Fscanf(io.LimitReader(f, 1<<10), markForm, &e.name, &e.size, &e.sum)
	if err == nil && !isDigest(e.name) {
		err = errors.New("it names no entry")
	}
	if err != nil {
		err = fmt.Errorf("%s is damaged: %w", path, err)
	}
	return e, errors.Join(err, f.Close())
}

func isDigest(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size
}

// readEntry describes a file. A file that other users could write to is refused.
func readEntry(path string) (e entry, err error) {
	f, info, err := pathcheck.OpenOwn(path)
	if err != nil {
		return e, err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	e = entry{name: filepath.Base(path), size: info.Size(), sum: hex.EncodeToString(h.Sum(nil))}
	return e, errors.Join(err, f.Close())
}

// errForeignCode is the error for code that another version of skep compiled.
var errForeignCode = errors.New("the compiler has left no code for this program: has skep been replaced since it was started? start it anew")

// install moves the code in a stage into the cache.
func (c *cache) install(stage string, metered []byte) error {
	from := filepath.Join(stage, filepath.Base(c.entries))
	made, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(made) != 1 || !isDigest(made[0].Name()) {
		return errForeignCode
	}
	e, err := readEntry(filepath.Join(from, made[0].Name()))
	if err != nil {
		return err
	}
	note := filepath.Join(stage, "mark")
	if err := os.WriteFile(note, fmt.Appendf(nil, markForm, e.name, e.size, e.sum), 0o600); err != nil {
		return err
	}
	// The mark last: it makes the entry usable.
	if err := os.Rename(filepath.Join(from, e.name), filepath.Join(c.entries, e.name)); err != nil {
		return err
	}
	return os.Rename(note, c.markPath(metered))
}

// Compiled reports whether a compile cache has a module from an earlier load.
func Compiled(cacheDir string, metered []byte) bool {
	if cacheDir == "" {
		return false
	}
	name, err := wazeroDirName("")
	c := &cache{entries: filepath.Join(cacheDir, cacheVersion(), name)}
	return err == nil && c.check(metered) == nil
}

package sandbox

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

	"skep/host/internal/guard"
)

// entry is what a mark says of a module's compiled code.
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

// fill makes sure that the cache has a module's code: what compile leaves in the
// directory it is called with.
func (c *cache) fill(ctx context.Context, metered []byte, compile func(ctx context.Context, dir string) error) (err error) {
	if err := guard.Dir(c.entries); err != nil {
		return err
	}
	why := c.check(metered)
	if why == nil {
		return nil
	}
	if !errors.Is(why, fs.ErrNotExist) {
		c.log.Warn("compiled code is not used, the module is compiled anew", "reason", why)
	}
	stage, err := os.MkdirTemp(c.dir, stages)
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
	if err := c.adopt(stage, metered); err != nil {
		return &CompileError{Dir: c.dir, Err: err}
	}
	return nil
}

// check says why a module's code cannot be used, nil if it can: fs.ErrNotExist
// where there is none.
func (c *cache) check(metered []byte) error {
	want, err := c.mark(metered)
	if err != nil {
		return err
	}
	is, err := look(filepath.Join(c.entries, want.name))
	if err != nil {
		return err
	}
	if is != want {
		return fmt.Errorf("%s is not what was compiled", filepath.Join(c.entries, want.name))
	}
	return nil
}

const markForm = "%s %d %s\n"

// mark reads a module's mark.
func (c *cache) mark(metered []byte) (e entry, err error) {
	path := c.markPath(metered)
	f, _, err := guard.OpenOwn(path)
	if err != nil {
		return e, err
	}
	_, err = fmt.Fscanf(io.LimitReader(f, 1<<10), markForm, &e.name, &e.size, &e.sum)
	if err == nil && !isSum(e.name) {
		err = errors.New("it names no entry")
	}
	if err != nil {
		err = fmt.Errorf("%s is damaged: %w", path, err)
	}
	return e, errors.Join(err, f.Close())
}

func isSum(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size
}

// look says what an entry is, unless others could write to it.
func look(path string) (e entry, err error) {
	f, info, err := guard.OpenOwn(path)
	if err != nil {
		return e, err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	e = entry{name: filepath.Base(path), size: info.Size(), sum: hex.EncodeToString(h.Sum(nil))}
	return e, errors.Join(err, f.Close())
}

// errForeignCode says that a child is not of this program's making.
var errForeignCode = errors.New("the compiler has left no code for this program: has skep been replaced since it was started? start it anew")

// adopt takes over what was compiled into a stage.
func (c *cache) adopt(stage string, metered []byte) error {
	from := filepath.Join(stage, filepath.Base(c.entries))
	made, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(made) != 1 || !isSum(made[0].Name()) {
		return errForeignCode
	}
	e, err := look(filepath.Join(from, made[0].Name()))
	if err != nil {
		return err
	}
	note := filepath.Join(stage, "mark")
	if err := os.WriteFile(note, fmt.Appendf(nil, markForm, e.name, e.size, e.sum), 0o600); err != nil {
		return err
	}
	// The mark last: it vouches for what is there.
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
	name, err := wazerosName("")
	c := &cache{entries: filepath.Join(cacheDir, cacheVersion(), name)}
	return err == nil && c.check(metered) == nil
}

package wasm

import (
	"bufio"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"skep/host/internal/pathcheck"
	"skep/host/internal/turn/wasm/binary"
)

// keptHead begins the file of a prepared module. Another program, or this one with other caps,
// prepares the module again: what it admits may differ. The metered code and the data follow.
type keptHead struct {
	Program     string
	Caps        binary.Caps
	Module      preparedModule // without what follows
	MeteredSize int64
	DataSizes   []int64 // of each segment
}

// programID names the program that runs; empty where that cannot be told.
func programID() string {
	path := "/proc/self/exe" // also of a file that was replaced
	info, err := os.Stat(path)
	if err != nil {
		if path, err = os.Executable(); err == nil {
			info, err = os.Stat(path)
		}
	}
	if err != nil {
		return ""
	}
	build, _ := debug.ReadBuildInfo()
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %v", info.Size(), info.ModTime().UnixNano(), build))
	return hex.EncodeToString(sum[:])
}

// findPrepared returns the module that the cache keeps, nil for none.
func (c *cache) findPrepared(digest string, caps binary.Caps) *preparedModule {
	if c == nil || c.program == "" {
		return nil
	}
	p, err := c.readPrepared(digest, caps)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Debug("a kept module is not used, it is admitted and metered anew", "reason", err)
	}
	return p
}

// preparedPath is where the cache keeps a module, by the digest of its bytes.
func (c *cache) preparedPath(digest string) string {
	return filepath.Join(c.dir, "prepared-"+digest)
}

// readPrepared reads a module that this program has kept with the same caps.
func (c *cache) readPrepared(digest string, caps binary.Caps) (p *preparedModule, err error) {
	if err := pathcheck.Dir(c.dir); err != nil {
		return nil, err
	}
	path := c.preparedPath(digest)
	f, info, err := pathcheck.OpenOwn(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var want [sha256.Size]byte
	if _, err := io.ReadFull(f, want[:]); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	sum := sha256.New()
	head, err := readKept(bufio.NewReader(io.TeeReader(f, sum)), info.Size())
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	case [sha256.Size]byte(sum.Sum(nil)) != want:
		return nil, fmt.Errorf("%s is damaged", path)
	case head.Program != c.program || head.Caps != caps:
		return nil, fmt.Errorf("%s is of another program, or of other caps", path)
	}
	return &head.Module, nil
}

// readKept reads a prepared module to the end of its file, of at most so many bytes.
func readKept(r *bufio.Reader, size int64) (h keptHead, err error) {
	if err := gob.NewDecoder(r).Decode(&h); err != nil {
		return h, err
	}
	next := func(n int64) []byte {
		if size -= n; n < 0 || size < 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil
		}
		part := make([]byte, n)
		_, err = io.ReadFull(r, part)
		return part
	}
	h.Module.Metered = next(h.MeteredSize)
	if len(h.DataSizes) != len(h.Module.Data) {
		return h, errors.New("data is missing")
	}
	for i, n := range h.DataSizes {
		h.Module.Data[i].Bytes = next(n)
	}
	if _, end := r.ReadByte(); err == nil && end != io.EOF {
		err = errors.New("it goes on after its end")
	}
	return h, err
}

// keepPrepared keeps a module that was loaded. A cache that cannot is slower at each start.
func (c *cache) keepPrepared(digest string, caps binary.Caps, p *preparedModule) {
	if c == nil || c.program == "" {
		return
	}
	if err := c.writePrepared(digest, keptHead{Program: c.program, Caps: caps, Module: *p}); err != nil {
		c.log.Warn("the cache does not keep a module: each start admits and meters it", "reason", err)
	}
}

// writePrepared writes a file with its digest before its content. It takes the place of an older one.
func (c *cache) writePrepared(digest string, h keptHead) (err error) {
	f, err := os.CreateTemp(c.dir, stagePrefix)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = f.Write(make([]byte, sha256.Size))
	if err == nil {
		out := bufio.NewWriter(io.MultiWriter(f, sum))
		err = errors.Join(writeKept(out, h), out.Flush())
	}
	if err == nil {
		_, err = f.WriteAt(sum.Sum(nil), 0)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.preparedPath(digest))
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// writeKept writes the large parts by themselves: an encoder would copy them.
func writeKept(w io.Writer, h keptHead) error {
	metered, data := h.Module.Metered, h.Module.Data
	h.MeteredSize, h.Module.Metered, h.Module.Data = int64(len(metered)), nil, slices.Clone(data)
	for i, s := range data {
		h.DataSizes = append(h.DataSizes, int64(len(s.Bytes)))
		h.Module.Data[i].Bytes = nil
	}
	if err := gob.NewEncoder(w).Encode(h); err != nil {
		return err
	}
	_, err := w.Write(metered)
	for _, s := range data {
		if err == nil {
			_, err = w.Write(s.Bytes)
		}
	}
	return err
}

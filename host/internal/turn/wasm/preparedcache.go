package wasm

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"skep/host/internal/pathcheck"
	"skep/host/internal/turn/wasm/binary"
)

// preparedFile is a prepared module in the cache's directory. Another program, or this one with other
// caps, prepares the module again: what it admits may differ. The metered code and the data follow.
type preparedFile struct {
	Program     string
	Caps        binary.Caps
	Module      preparedModule // without what follows
	MeteredSize int64
	DataSizes   []int64 // of each segment
}

// buildIDSection has the hash of all that the linker was given
// (https://pkg.go.dev/cmd/internal/buildid).
const buildIDSection = ".note.go.buildid"

// programID names the content of the program that runs; empty where it is not known.
func programID() string {
	f, err := elf.Open("/proc/self/exe") // also of a file that was replaced
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	section := f.Section(buildIDSection)
	if section == nil {
		return ""
	}
	note, err := section.Data()
	if err != nil || len(note) < minBuildID {
		return ""
	}
	return hex.EncodeToString(note)
}

// minBuildID is the size of a note with a hash, in bytes: a program may be linked with an empty one.
const minBuildID = 48

// findPrepared returns a module as this program has prepared it before, nil for none.
func (c *cache) findPrepared(digest string, caps binary.Caps) *preparedModule {
	if c == nil || c.program == "" {
		return nil
	}
	p, err := c.readPrepared(digest, caps)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Debug("a prepared module is not used, it is admitted and metered anew", "reason", err)
	}
	return p
}

// preparedPath is where the cache has a prepared module, by the digest of the module's bytes.
func (c *cache) preparedPath(digest string) string {
	return filepath.Join(c.dir, "prepared-"+digest)
}

// readPrepared reads a module that this program has prepared with the same caps.
func (c *cache) readPrepared(digest string, caps binary.Caps) (p *preparedModule, err error) {
	if err := pathcheck.Dir(c.dir); err != nil {
		return nil, err
	}
	path := c.preparedPath(digest)
	f, info, err := pathcheck.OpenOwn(path)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, info.Size()))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(raw) < sha256.Size || sha256.Sum256(raw[sha256.Size:]) != [sha256.Size]byte(raw[:sha256.Size]) {
		return nil, fmt.Errorf("%s is damaged", path)
	}
	file, err := decodePrepared(bytes.NewReader(raw[sha256.Size:]))
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	if file.Program != c.program || file.Caps != caps {
		return nil, fmt.Errorf("%s is of another program, or of other caps", path)
	}
	return &file.Module, nil
}

// decodePrepared reads what encodePrepared has written.
func decodePrepared(r *bytes.Reader) (f preparedFile, err error) {
	if err := gob.NewDecoder(r).Decode(&f); err != nil {
		return f, err
	}
	next := func(n int64) []byte {
		if n < 0 || n > int64(r.Len()) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil
		}
		part := make([]byte, n)
		_, err = io.ReadFull(r, part)
		return part
	}
	f.Module.Metered = next(f.MeteredSize)
	if len(f.DataSizes) != len(f.Module.Data) {
		return f, errors.New("data is missing")
	}
	for i, n := range f.DataSizes {
		f.Module.Data[i].Bytes = next(n)
	}
	if err == nil && r.Len() > 0 {
		err = errors.New("it goes on after its end")
	}
	return f, err
}

// savePrepared lets the cache have a module that was loaded. Where it cannot, each start is slower.
func (c *cache) savePrepared(digest string, caps binary.Caps, p *preparedModule) {
	if c == nil || c.program == "" || c.temporary != "" {
		return
	}
	if err := c.writePrepared(digest, preparedFile{Program: c.program, Caps: caps, Module: *p}); err != nil {
		c.log.Warn("the cache takes no prepared module: each start admits and meters it", "reason", err)
	}
}

// writePrepared writes a file with its digest before its content. It takes the place of an older one.
func (c *cache) writePrepared(digest string, file preparedFile) (err error) {
	f, err := os.CreateTemp(c.dir, stagePrefix)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = f.Write(make([]byte, sha256.Size))
	if err == nil {
		out := bufio.NewWriter(io.MultiWriter(f, sum))
		err = errors.Join(encodePrepared(out, file), out.Flush())
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

// encodePrepared writes the large parts by themselves: an encoder would copy them.
func encodePrepared(w io.Writer, file preparedFile) error {
	metered, data := file.Module.Metered, file.Module.Data
	file.MeteredSize, file.Module.Metered, file.Module.Data = int64(len(metered)), nil, slices.Clone(data)
	for i, s := range data {
		file.DataSizes = append(file.DataSizes, int64(len(s.Bytes)))
		file.Module.Data[i].Bytes = nil
	}
	if err := gob.NewEncoder(w).Encode(file); err != nil {
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

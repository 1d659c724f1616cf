package keyring

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"skep/host/internal/pathcheck"
	"skep/host/internal/store/atomicfile"
)

// tornSuffix is what the name of the file ends with that takes the end of a
// write that was cut short. Later ones have a number behind it.
const tornSuffix = ".torn"

// maxTorn bounds how many are kept.
const maxTorn = 1000

// fileMedium is a keyring in a file.
type fileMedium struct {
	path     string
	readOnly bool
	// size is how many bytes of the file are known.
	size int64
	// aside is how many bytes were moved to asideFile.
	aside     int
	asideFile string
}

func (f *fileMedium) load() (content, error) {
	if err := checkOwn(f.path); err != nil {
		return content{}, err
	}
	if !f.readOnly {
		if err := atomicfile.WipeLeft(f.path); err != nil {
			return content{}, err
		}
	}
	raw, c, err := readContent(f.path)
	if err != nil {
		return content{}, err
	}
	f.size = c.whole
	if int64(len(raw)) > c.whole && !f.readOnly {
		err = f.setAside(raw[c.whole:])
	}
	return c, err
}

func (f *fileMedium) unchanged() bool {
	info, err := os.Stat(f.path)
	return err == nil && info.Size() == f.size
}

func (f *fileMedium) append(line []byte) error {
	file, err := os.OpenFile(f.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(line, f.size)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	f.size += int64(len(line))
	return nil
}

// replace writes the whole file, and wipes what it held before.
func (f *fileMedium) replace(text []byte) error {
	if err := errors.Join(atomicfile.ReplaceWiped(f.path, text), wipeAside(f.path+tornSuffix)); err != nil {
		return err
	}
	f.size = int64(len(text))
	return nil
}

// checkOwn refuses a link: it would be replaced, and what it leads to would keep
// keys that are destroyed.
func checkOwn(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file of its own but a link or worse, and keys that are destroyed would stay where it leads: put the file itself in its place, or link the whole data directory")
	}
	return err
}

// setAside moves the end of the file to another one: what is no whole line was
// never said to be durable, unless the disk has damaged it since.
func (f *fileMedium) setAside(end []byte) error {
	name, err := freeName(f.path + tornSuffix)
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(name, end); err != nil {
		return err
	}
	file, err := os.OpenFile(f.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = file.Truncate(f.size)
	f.aside, f.asideFile = len(end), name
	return errors.Join(err, file.Sync(), file.Close())
}

// freeName returns a name that is not taken, with a number from 2 on behind it if
// it must.
func freeName(name string) (string, error) {
	for n := 1; n <= maxTorn; n++ {
		try := name
		if n > 1 {
			try += "." + strconv.Itoa(n)
		}
		switch _, err := os.Lstat(try); {
		case errors.Is(err, fs.ErrNotExist):
			return try, nil
		case err != nil:
			return "", err
		}
	}
	return "", fmt.Errorf("there are %d files %s already: move them away", maxTorn, name)
}

// wipeAside removes what was ever set aside: it may hold keys.
func wipeAside(path string) error {
	path = filepath.Clean(path)
	list, err := os.ReadDir(filepath.Dir(path))
	errs := []error{err}
	for _, e := range list {
		name := filepath.Join(filepath.Dir(path), e.Name())
		if e.Type().IsRegular() && (name == path || strings.HasPrefix(name, path+".")) {
			errs = append(errs, atomicfile.Wipe(name), os.Remove(name))
		}
	}
	return errors.Join(errs...)
}

// Read returns the content of the keyring at path, as it was at one moment, for
// a copy. It may be in use, and needs no wrapping key.
func Read(path string) ([]byte, error) {
	raw, c, err := readContent(path)
	if err != nil {
		return nil, fmt.Errorf("keyring %s: %w", path, err)
	}
	return raw[:c.whole], nil
}

// rereads bounds how often a file is read that is replaced meanwhile.
const rereads = 10

// readContent reads a file. One that was wiped while it was read has a
// successor.
func readContent(path string) (raw []byte, c content, err error) {
	for range rereads {
		var seen fs.FileInfo
		if raw, seen, err = read(path); err != nil {
			return nil, content{}, err
		}
		if c, err = parse(raw); err == nil && c.whole == int64(len(raw)) {
			break
		}
		if now, stat := os.Stat(path); stat != nil || os.SameFile(seen, now) {
			break
		}
	}
	return raw, c, err
}

// read returns the content of a file that only its owner can read.
func read(path string) ([]byte, fs.FileInfo, error) {
	f, err := pathcheck.OpenRegular(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if mode := info.Mode(); pathcheck.Grants(mode, 0o077) {
		return nil, nil, fmt.Errorf("others could read it (mode %#o): run chmod 600 %s", mode.Perm(), path)
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, f)
	return b.Bytes(), info, err
}

package keyring

import (
	"bytes"
	"crypto/cipher"
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

// load reads the file, if there is one, and gives it today's form. The caller
// has r alone.
func (r *Ring) load() error {
	if err := checkOwn(r.path); err != nil {
		return err
	}
	if !r.readOnly {
		if err := atomicfile.WipeLeft(r.path); err != nil {
			return err
		}
	}
	raw, c, err := readContent(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.checkKEK(c.Check); err != nil {
		return err
	}
	r.wrapped = c.Check != nil
	for _, fk := range c.keys {
		if err := r.addFromFile(fk); err != nil {
			return err
		}
	}
	r.file, r.size = true, c.whole
	switch {
	case r.readOnly:
		return nil
	case int64(len(raw)) > c.whole:
		return r.setAside(raw[c.whole:])
	case c.Version < fileVersion, !r.wrapped && r.kek != nil:
		return r.replace(r.sorted(), r.kek)
	}
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

func (r *Ring) checkKEK(check []byte) error {
	if check == nil {
		return nil
	}
	if r.kek == nil {
		return ErrWrapped
	}
	if _, err := unwrap(r.kek, check, checkName); err != nil {
		return ErrWrongKEK
	}
	return nil
}

// addFromFile adds a key of the file. It retires the one that its tenant had.
func (r *Ring) addFromFile(fk fileKey) error {
	k := &key{id: fk.ID, tenant: fk.Tenant, created: fk.Created, retired: fk.Retired, destroyed: fk.Destroyed}
	if k.state() != Destroyed {
		k.secret = fk.Key
		if r.wrapped {
			var err error
			if k.secret, err = unwrap(r.kek, fk.Key, fk.name()); err != nil {
				return fmt.Errorf("key %s of tenant %q is damaged: restore the keyring from a copy", k.id, k.tenant)
			}
		}
		if len(k.secret) != 32 {
			return fmt.Errorf("key %s of tenant %q has %d bytes, it is damaged: restore the keyring from a copy", k.id, k.tenant, len(k.secret))
		}
	}
	if k.id == 0 || r.keys[k.id] != nil {
		return fmt.Errorf("key %s of tenant %q is in it twice: restore the keyring from a copy", k.id, k.tenant)
	}
	r.addKey(k)
	return nil
}

// setAside moves the end of the file to another one: what is no whole line was
// never said to be durable, unless the disk has damaged it since.
func (r *Ring) setAside(end []byte) error {
	name, err := freeName(r.path + tornSuffix)
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(name, end); err != nil {
		return err
	}
	f, err := os.OpenFile(r.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = f.Truncate(r.size)
	r.aside, r.asideFile = len(end), name
	return errors.Join(err, f.Sync(), f.Close())
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

// append adds keys to the file, in one line. The caller holds r.disk. A file
// that is not as this ring has left it is replaced.
func (r *Ring) append(fresh []*key) error {
	if info, err := os.Stat(r.path); r.spoilt || err != nil || info.Size() != r.size {
		return r.replace(append(r.sorted(), fresh...), r.kek)
	}
	line, err := r.render(nil, fresh, r.kek)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(line, r.size)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		r.spoilt = true
		return err
	}
	r.size += int64(len(line))
	return nil
}

// replace writes the whole file, and wipes what it held before. The caller holds
// r.disk.
func (r *Ring) replace(keys []*key, kek cipher.AEAD) (err error) {
	h := header{Version: fileVersion, Count: len(keys)}
	if kek != nil {
		if h.Check, err = wrap(kek, nil, checkName); err != nil {
			return err
		}
	}
	text, err := appendLine(nil, h)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if text, err = r.render(text, []*key{k}, kek); err != nil {
			return err
		}
	}
	// Until it is done either of the two may be there.
	r.spoilt = true
	if err := errors.Join(atomicfile.ReplaceWiped(r.path, text), wipeAside(r.path+tornSuffix)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size, r.spoilt, r.file, r.wrapped = int64(len(text)), false, true, kek != nil
	return nil
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

// render appends a line with keys.
func (r *Ring) render(dst []byte, keys []*key, kek cipher.AEAD) ([]byte, error) {
	var b batch
	for _, k := range keys {
		fk := fileKey{ID: k.id, Tenant: k.tenant, Created: k.created, Retired: k.retired, Destroyed: k.destroyed, Key: k.secret}
		if kek != nil && k.secret != nil {
			var err error
			if fk.Key, err = wrap(kek, k.secret, fk.name()); err != nil {
				return nil, err
			}
		}
		b.Keys = append(b.Keys, fk)
	}
	return appendLine(dst, b)
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

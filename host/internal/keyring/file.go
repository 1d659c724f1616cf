package keyring

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"skep/host/internal/lasting"
)

// fileVersion is the newest form of the file that is known here.
const fileVersion = 1

// file is the form on disk. Check is the empty text, wrapped: it tells whether a
// wrapping key is the right one, and its absence that the keys are plain.
type file struct {
	Version int       `json:"version"`
	Check   []byte    `json:"check,omitempty"`
	Keys    []fileKey `json:"keys"`
}

type fileKey struct {
	ID        ID        `json:"id"`
	Tenant    string    `json:"tenant"`
	Created   time.Time `json:"created"`
	Retired   time.Time `json:"retired,omitzero"`
	Destroyed time.Time `json:"destroyed,omitzero"`
	Key       []byte    `json:"key,omitempty"`
}

// checkName is what the check is wrapped for.
const checkName = "skep keyring"

// name binds a wrapped key to its entry.
func (k fileKey) name() string { return fmt.Sprintf("%s\x00%d\x00%s", checkName, k.ID, k.Tenant) }

// load reads the file, if there is one. Keys that lie plain although there is a
// wrapping key now are wrapped.
func (r *Ring) load() error {
	content, err := read(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var f file
	if err := json.Unmarshal(content, &f); err != nil {
		return fmt.Errorf("it is damaged, restore it from a copy: %w", err)
	}
	if f.Version != fileVersion {
		return fmt.Errorf("its version is %d and this skep knows %d: use the newer skep that wrote it", f.Version, fileVersion)
	}
	if err := r.checkKEK(f.Check); err != nil {
		return err
	}
	r.file = true
	for _, fk := range f.Keys {
		if err := r.take(fk, f.Check != nil); err != nil {
			return err
		}
	}
	if f.Check == nil && r.kek != nil {
		return r.save()
	}
	return nil
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

// take adds a key of the file.
func (r *Ring) take(fk fileKey, wrapped bool) error {
	k := &key{id: fk.ID, tenant: fk.Tenant, created: fk.Created, retired: fk.Retired, destroyed: fk.Destroyed}
	if k.state() != Destroyed {
		k.secret = fk.Key
		if wrapped {
			var err error
			if k.secret, err = unwrap(r.kek, fk.Key, fk.name()); err != nil {
				return fmt.Errorf("key %08x of tenant %q is damaged: restore the keyring from a copy", uint32(k.id), k.tenant)
			}
		}
		if len(k.secret) != 32 {
			return fmt.Errorf("key %08x of tenant %q has %d bytes, it is damaged: restore the keyring from a copy", uint32(k.id), k.tenant, len(k.secret))
		}
	}
	if k.id == 0 || r.keys[k.id] != nil || k.state() == Current && r.current[k.tenant] != nil {
		return fmt.Errorf("key %08x of tenant %q is in it twice: restore the keyring from a copy", uint32(k.id), k.tenant)
	}
	r.keys[k.id] = k
	if k.state() == Current {
		r.current[k.tenant] = k
	}
	return nil
}

// save writes the file. The caller holds r.mu.
func (r *Ring) save() error {
	f := file{Version: fileVersion, Keys: []fileKey{}}
	var err error
	if r.kek != nil {
		if f.Check, err = wrap(r.kek, nil, checkName); err != nil {
			return err
		}
	}
	for _, k := range r.sorted() {
		fk := fileKey{ID: k.id, Tenant: k.tenant, Created: k.created, Retired: k.retired, Destroyed: k.destroyed, Key: k.secret}
		if r.kek != nil && k.secret != nil {
			if fk.Key, err = wrap(r.kek, k.secret, fk.name()); err != nil {
				return err
			}
		}
		f.Keys = append(f.Keys, fk)
	}
	content, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := lasting.Replace(r.path, append(content, '\n')); err != nil {
		return err
	}
	r.file = true
	return nil
}

// read returns the content of a file that only its owner can read.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); !mode.IsRegular() || mode.Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others could read it (mode %#o): run chmod 600 %s", mode.Perm(), path)
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, f)
	return b.Bytes(), err
}

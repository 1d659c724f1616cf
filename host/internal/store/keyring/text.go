package keyring

import (
	"crypto/cipher"
	"errors"
	"fmt"
	"io/fs"
)

// load reads the keyring, if there is one, and gives it today's form. The caller has r alone.
func (r *Ring) load() error {
	c, err := r.at.load()
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
	r.file = true
	if !r.readOnly && (c.Version < fileVersion || !r.wrapped && r.kek != nil) {
		return r.replace(r.sorted(), r.kek)
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

// append adds keys, in one line. The caller holds r.disk. A text that is not as this ring has
// left it is replaced.
func (r *Ring) append(fresh []*key) error {
	if r.spoilt || !r.file || !r.at.unchanged() {
		return r.replace(append(r.sorted(), fresh...), r.kek)
	}
	line, err := render(nil, fresh, r.kek)
	if err == nil {
		err = r.at.append(line)
		r.spoilt = err != nil
	}
	return err
}

// replace writes all keys. The caller holds r.disk.
func (r *Ring) replace(keys []*key, kek cipher.AEAD) error {
	text, err := renderAll(keys, kek)
	if err != nil {
		return err
	}
	// Until it is done either of the two may be there.
	r.spoilt = true
	if err := r.at.replace(text); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spoilt, r.file, r.wrapped = false, true, kek != nil
	return nil
}

// Text returns the keyring as its text, wrapped with a key; nil leaves the keys plain.
func (r *Ring) Text(kek []byte) ([]byte, error) {
	wrap, err := newKEK(kek)
	if err != nil {
		return nil, err
	}
	return renderAll(r.sorted(), wrap)
}

// renderAll makes the header and a line for each key.
func renderAll(keys []*key, kek cipher.AEAD) (text []byte, err error) {
	h := header{Version: fileVersion, Count: len(keys)}
	if kek != nil {
		if h.Check, err = wrap(kek, nil, checkName); err != nil {
			return nil, err
		}
	}
	if text, err = appendLine(nil, h); err != nil {
		return nil, err
	}
	for _, k := range keys {
		if text, err = render(text, []*key{k}, kek); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// render appends a line with keys.
func render(dst []byte, keys []*key, kek cipher.AEAD) ([]byte, error) {
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

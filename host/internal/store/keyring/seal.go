package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync/atomic"
)

// Sealed bytes are: key number (4), salt (12), count (8), ciphertext and tag.
const (
	idSize     = 4
	saltSize   = 12
	countSize  = 8
	headerSize = idSize + saltSize + countSize
	tagSize    = 16
	// Overhead is how much longer sealed bytes are.
	Overhead = headerSize + tagSize
)

// maxDerived bounds the derived keys that are kept for opening; each ring that
// was ever open left a salt.
const maxDerived = 1024

// origin names the derived key that sealed.
type origin struct {
	id   ID
	salt [saltSize]byte
}

// Sealer seals for one tenant. It is safe for concurrent use.
type Sealer struct {
	origin
	aead  cipher.AEAD
	count atomic.Uint64
}

// ID returns the number of the key behind it.
func (s *Sealer) ID() ID { return s.id }

// Seal appends plain, sealed, to dst. It opens only with the same place.
func (s *Sealer) Seal(dst, plain, place []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(s.id))
	dst = append(dst, s.salt[:]...)
	var nonce [12]byte
	binary.BigEndian.PutUint64(nonce[12-countSize:], s.count.Add(1))
	dst = append(dst, nonce[12-countSize:]...)
	return s.aead.Seal(dst, nonce[:], plain, place)
}

// newSealer makes the sealer of a key. The caller holds r.mu.
func (r *Ring) newSealer(k *key) (*Sealer, error) {
	s := &Sealer{origin: origin{id: k.id}}
	if _, err := rand.Read(s.salt[:]); err != nil {
		return nil, err
	}
	var err error
	if s.aead, err = derive(k.secret, s.salt); err != nil {
		return nil, err
	}
	if len(r.sealers) >= maxDerived {
		clear(r.sealers)
	}
	r.sealers[k.id] = s
	return s, nil
}

func derive(secret []byte, salt [saltSize]byte) (cipher.AEAD, error) {
	k, err := hkdf.Key(sha256.New, secret, salt[:], "skep store 1", 32)
	if err != nil {
		return nil, err
	}
	return newAEAD(k)
}

func newAEAD(k []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(k)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// KeyOf returns the number of the key that sealed.
func KeyOf(sealed []byte) (ID, error) {
	if len(sealed) < Overhead {
		return 0, fmt.Errorf("%w: %d bytes are too few", ErrSealed, len(sealed))
	}
	return ID(binary.BigEndian.Uint32(sealed)), nil
}

// Open appends what was sealed for place to dst.
func (r *Ring) Open(dst, sealed, place []byte) ([]byte, error) {
	id, err := KeyOf(sealed)
	if err != nil {
		return nil, err
	}
	o := origin{id: id, salt: [saltSize]byte(sealed[idSize:])}
	aead, err := r.opener(o)
	if err != nil {
		return nil, fmt.Errorf("sealed with key %08x: %w", uint32(id), err)
	}
	var nonce [12]byte
	copy(nonce[12-countSize:], sealed[idSize+saltSize:headerSize])
	out, err := aead.Open(dst, nonce[:], sealed[headerSize:], place)
	if err != nil {
		return nil, ErrSealed
	}
	return out, nil
}

func (r *Ring) opener(o origin) (cipher.AEAD, error) {
	r.mu.RLock()
	aead, ok := r.openers[o]
	k := r.keys[o.id]
	r.mu.RUnlock()
	if ok {
		return aead, nil
	}
	if k.state() == Unknown {
		r.lookAgain(o.id)
	}
	switch r.State(o.id) {
	case Unknown:
		return nil, ErrUnknown
	case Destroyed:
		return nil, ErrDestroyed
	}
	return r.deriveOpener(o)
}

// deriveOpener derives the key of an origin and keeps it, unless the key behind it
// was destroyed meanwhile.
func (r *Ring) deriveOpener(o origin) (cipher.AEAD, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keys[o.id]
	if k.state() == Destroyed {
		return nil, ErrDestroyed
	}
	aead, err := derive(k.secret, o.salt)
	if err != nil {
		return nil, err
	}
	if len(r.openers) >= maxDerived {
		clear(r.openers)
	}
	r.openers[o] = aead
	return aead, nil
}

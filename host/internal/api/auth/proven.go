package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Proven is a principal and what proves him.
type Proven struct {
	Principal
	// Recheck reports whether the credential still proves the principal. It is nil for a
	// client certificate, which holds as long as its connection.
	Recheck func(context.Context) bool
	// Digest is the credential's if a [Ledger] knows it, else zero.
	Digest Digest
}

// Digest identifies a credential, and may be stored: nobody can make the credential of it.
type Digest [sha256.Size]byte

// MarshalText writes a digest in hex.
func (d Digest) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(d[:])), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return fmt.Errorf("a digest has %d hex digits", hex.EncodedLen(len(d)))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// Ledger is an [Authenticator] that has a list of what it accepts. A JSON Web Token or one
// that an endpoint accepts is on no list.
type Ledger interface {
	// Holder returns whose a credential is; ok is false for one that is not accepted now.
	Holder(Digest) (p Principal, ok bool)
}

// Holder implements [Ledger].
func (k *Keys) Holder(d Digest) (Principal, bool) {
	for _, key := range k.keys {
		if d == key.SHA256 {
			return key.Principal, true
		}
	}
	return Principal{}, false
}

// Holder implements [Ledger].
func (t *Tokens) Holder(d Digest) (Principal, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i, ok := t.byDigest[d]
	if !ok || !i.ValidAt(t.now()) {
		return Principal{}, false
	}
	return i.Principal, true
}

// Holder implements [Ledger].
func (c Chain) Holder(d Digest) (Principal, bool) {
	for _, a := range c {
		if l, ok := a.(Ledger); ok {
			if p, ok := l.Holder(d); ok {
				return p, true
			}
		}
	}
	return Principal{}, false
}

// Holder implements [Ledger].
func (a OperatorGuard) Holder(d Digest) (Principal, bool) {
	l, ok := a.Authenticator.(Ledger)
	if !ok {
		return Principal{}, false
	}
	p, ok := l.Holder(d)
	return p, ok && !a.Operators.Conflicts(p)
}

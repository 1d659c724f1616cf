package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
)

// Key is a principal and the digest of its key. The key itself is not stored.
type Key struct {
	Principal
	SHA256 [sha256.Size]byte
}

// NewKey returns a Key from the key's text, as for the key that a host makes at
// its first start.
func NewKey(p Principal, text string) Key { return Key{p, sha256.Sum256([]byte(text))} }

// Keys is a fixed set of keys.
type Keys struct{ keys []Key }

// NewKeys validates and copies keys. Without keys every caller is unknown.
func NewKeys(keys []Key) (*Keys, error) {
	seen := make(map[[sha256.Size]byte]Principal, len(keys))
	for _, k := range keys {
		switch first, taken := seen[k.SHA256]; {
		case k.ID == "":
			return nil, errors.New("auth: a key without an id")
		case !k.Role.Valid():
			return nil, fmt.Errorf("auth: key of %q: role %q is not operator, admin, user or agent", k.ID, k.Role)
		case k.SHA256 == sha256.Sum256(nil):
			return nil, fmt.Errorf("auth: the key of %s is empty", k.Principal)
		case taken:
			return nil, fmt.Errorf("auth: %s and %s have the same key", first, k.Principal)
		}
		seen[k.SHA256] = k.Principal
	}
	known := &Keys{append([]Key(nil), keys...)}
	operators := known.Operators()
	for _, k := range keys {
		if operators.Conflicts(k.Principal) {
			return nil, fmt.Errorf("auth: %s has the id of an operator; one of them needs another", k.Principal)
		}
	}
	return known, nil
}

// Operators returns the operators that have a key.
func (k *Keys) Operators() (all Operators) {
	for _, key := range k.keys {
		if key.Role == Operator {
			all = append(all, key.Principal)
		}
	}
	return all
}

var _ Backend = (*Keys)(nil)

// Claims implements [Backend]: a key may have any form.
func (k *Keys) Claims(string) bool { return false }

// Authenticate implements [Authenticator]. It compares the digest with all keys
// in constant time, so that its duration reveals nothing about them.
func (k *Keys) Authenticate(_ context.Context, token string) (Principal, error) {
	sum := sha256.Sum256([]byte(token))
	found := -1
	for i := range k.keys {
		fits := subtle.ConstantTimeCompare(sum[:], k.keys[i].SHA256[:])
		found = subtle.ConstantTimeSelect(fits, i, found)
	}
	if found < 0 {
		return Principal{}, ErrUnknown
	}
	return k.keys[found].Principal, nil
}

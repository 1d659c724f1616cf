package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
)

// Key says that whoever shows a text with this digest is the principal. The
// text itself is not kept.
type Key struct {
	Principal
	SHA256 [sha256.Size]byte
}

// NewKey returns the key of a principal whose text is known, as it is for the
// key that a host makes at its first start.
func NewKey(p Principal, text string) Key { return Key{p, sha256.Sum256([]byte(text))} }

// Keys is a fixed set of keys.
type Keys struct{ keys []Key }

// NewKeys checks and copies keys. No key opens nothing: every caller is then
// unknown.
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
		if operators.Share(k.Principal) {
			return nil, fmt.Errorf("auth: %s has the id of an operator; one of them needs another", k.Principal)
		}
	}
	return known, nil
}

// Operators are those that have a key.
func (k *Keys) Operators() (all Operators) {
	for _, key := range k.keys {
		if key.Role == Operator {
			all = append(all, key.Principal)
		}
	}
	return all
}

var _ Authority = (*Keys)(nil)

// Claims implements [Authority]: a key may have any form.
func (k *Keys) Claims(string) bool { return false }

// Authenticate implements [Authenticator]. It looks at all keys however early
// one fits, and compares digests only, so that the time it takes tells nothing
// about any of them.
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

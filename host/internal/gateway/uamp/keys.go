package uamp

import (
	"crypto"
	"time"

	"skep/host/internal/gateway/uamp/seal"
)

// Keys are the host's keys, which sign for it and for each of its agents (U-028).
type Keys struct {
	Current crypto.Signer
	// Next signs from NextFrom on, if it is set. It is published before, and Old after it
	// has signed: others keep our documents for up to a day.
	Next, Old crypto.Signer
	NextFrom  time.Time
}

// signer is the key that signs for a DID at a time.
func (k Keys) signer(did string, at time.Time) (seal.Key, error) {
	if k.Next != nil && !at.Before(k.NextFrom) {
		return keyOf(did, k.Next)
	}
	return keyOf(did, k.Current)
}

// published are the public keys of a DID: what signs, what will, what did.
func (k Keys) published(did string) (list []seal.PublicKey, err error) {
	for _, private := range []crypto.Signer{k.Current, k.Next, k.Old} {
		if private == nil {
			continue
		}
		key, err := keyOf(did, private)
		if err != nil {
			return nil, err
		}
		list = append(list, key.Public())
	}
	return list, nil
}

// keyOf is a key under its id for a DID.
func keyOf(did string, private crypto.Signer) (seal.Key, error) {
	key, err := seal.NewKey(did, private)
	return key.WithID(did + "#" + key.Public().Thumbprint()), err
}

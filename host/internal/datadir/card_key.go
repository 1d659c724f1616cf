package datadir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"skep/host/internal/peer/signature"
)

// CardKeyName is the file of the key that signs agent cards, in the data directory.
const CardKeyName = "gateways/a2a.key"

// CardKey is a public key of agent cards.
type CardKey struct {
	// State is "signs", "next" or "old".
	State string
	// ID is its thumbprint (https://www.rfc-editor.org/rfc/rfc7638).
	ID string
	// JWK is a JSON Web Key.
	JWK json.RawMessage
	// From is when a next key begins to sign; zero for others.
	From time.Time
}

// CardKeys lists the keys of agent cards, none before a host has made one. It works while
// a host runs as well.
func (d Data) CardKeys() ([]CardKey, error) {
	keys, err := signature.ReadRotation(d.cardKeyFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return cardKeys(keys, time.Now()), nil
}

// RotateCardKey makes the next key of agent cards.
func (d Data) RotateCardKey() (all []CardKey, err error) {
	defer func() { err = d.record("key.rotate", CardKeyName, err) }()
	now := time.Now()
	keys, err := signature.Rotate(d.cardKeyFile(), now)
	if err != nil {
		return nil, err
	}
	return cardKeys(keys, now), nil
}

func (d Data) cardKeyFile() string { return filepath.Join(d.Dir, filepath.FromSlash(CardKeyName)) }

// cardKeys are the keys as they are at a time. A next key that is due signs already.
func cardKeys(r signature.Rotation, now time.Time) []CardKey {
	one := func(state string, k signature.Key) CardKey {
		return CardKey{State: state, ID: k.PublicKey().ID(), JWK: k.PublicKey().JWK()}
	}
	current, others := one("signs", r.Current), []CardKey{}
	if r.Next != nil {
		next := one("next", *r.Next)
		next.From = r.NextFrom
		if !now.Before(r.NextFrom) {
			current.State, next.State = "old", "signs"
		}
		others = append(others, next)
	}
	if r.Old != nil {
		others = append(others, one("old", *r.Old))
	}
	return append([]CardKey{current}, others...)
}

// copyCardKeys copies the files of keys of agent cards, those that there are. The time of
// a next key is its file's.
func copyCardKeys(from, to string) error {
	for _, suffix := range signature.RotationSuffixes() {
		info, err := os.Lstat(from + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = copyFile(from+suffix, to+suffix, "the keys of agent cards")
		}
		if err == nil {
			err = os.Chtimes(to+suffix, time.Time{}, info.ModTime())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restoreCardKeys copies the keys of a backup, unless the directory has its own. The file
// whose absence counts comes last, so that a restore that was cut short is repeated.
func (d Data) restoreCardKeys(from string) error {
	to := d.cardKeyFile()
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	for _, suffix := range signature.RotationSuffixes() { // of a restore that was cut short
		if err := os.Remove(to + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return copyCardKeys(from, to)
}

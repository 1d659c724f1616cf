package datadir

import (
	"crypto"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"skep/host/internal/peer/signature"
)

// SigningGateways are the gateways that sign with a key of their own.
func SigningGateways() []string { return []string{"a2a", "uamp"} }

// GatewayKeyName is the file of the key with which a gateway signs, in the data directory.
func GatewayKeyName(gateway string) string { return "gateways/" + gateway + ".key" }

// GatewayKey is a public key of a gateway.
type GatewayKey struct {
	// State is "signs", "next" or "old".
	State string
	// ID is its thumbprint (https://www.rfc-editor.org/rfc/rfc7638).
	ID string
	// JWK is a JSON Web Key.
	JWK json.RawMessage
	// From is when a next key begins to sign; zero for others.
	From time.Time
}

// GatewayKeys lists the keys of a gateway, none before a host has made one. It works while
// a host runs as well.
func (d Data) GatewayKeys(gateway string) ([]GatewayKey, error) {
	keys, err := signature.ReadRotation(d.gatewayKeyFile(gateway))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return gatewayKeys(keys, time.Now()), nil
}

// RotateGatewayKey makes the next key of a gateway.
func (d Data) RotateGatewayKey(gateway string) (all []GatewayKey, err error) {
	defer func() { err = d.record("key.rotate", GatewayKeyName(gateway), err) }()
	now := time.Now()
	keys, err := signature.Rotate(d.gatewayKeyFile(gateway), now)
	if err != nil {
		return nil, err
	}
	return gatewayKeys(keys, now), nil
}

func (d Data) gatewayKeyFile(gateway string) string {
	return d.file(GatewayKeyName(gateway))
}

// gatewayKeys are the keys as they are at a time. A next key that is due signs already.
func gatewayKeys(r signature.Rotation, now time.Time) []GatewayKey {
	one := func(state string, k signature.Key) GatewayKey {
		return GatewayKey{State: state, ID: k.PublicKey().ID(), JWK: k.PublicKey().JWK()}
	}
	current, others := one("signs", r.Current), []GatewayKey{}
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
	return append([]GatewayKey{current}, others...)
}

// backUpGatewayKeys copies the keys of all gateways that the directory has.
func (d Data) backUpGatewayKeys(file string) error {
	if d.Dir == "" {
		return nil
	}
	for _, gateway := range SigningGateways() {
		if err := copyGatewayKeys(d.gatewayKeyFile(gateway), file+GatewayKeySuffix(gateway)); err != nil {
			return err
		}
	}
	return nil
}

// copyGatewayKeys copies the files of keys of a gateway, those that there are. The time of
// a next key is its file's.
func copyGatewayKeys(from, to string) error {
	for _, suffix := range signature.RotationSuffixes() {
		info, err := os.Lstat(from + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = copyFile(from+suffix, to+suffix, "the keys of a gateway")
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

// restoreGatewayKeys copies the keys of a backup, unless the directory has its own. The file
// whose absence counts comes last, so that a restore that was cut short is repeated.
func (d Data) restoreGatewayKeys(gateway, from string) error {
	to := d.gatewayKeyFile(gateway)
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
		if err := removeFile(to + suffix); err != nil {
			return err
		}
	}
	return copyGatewayKeys(from, to)
}

// GrantByGatewayKey calls sign with the key with which a gateway signs, to issue a token to a
// holder, and writes it to the audit log. It works while a host runs as well. Without a key
// the error is [fs.ErrNotExist].
func (d Data) GrantByGatewayKey(gateway, holder string, sign func(crypto.Signer) error) (err error) {
	defer func() { err = d.record("token.grant", holder, err) }()
	keys, err := signature.ReadRotation(d.gatewayKeyFile(gateway))
	if err != nil {
		return err
	}
	if keys.Next != nil && !time.Now().Before(keys.NextFrom) {
		return sign(keys.Next.Private())
	}
	return sign(keys.Current.Private())
}

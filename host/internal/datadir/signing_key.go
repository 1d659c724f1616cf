package datadir

import (
	"path/filepath"

	"skep/host/internal/peer/signature"
)

// SigningKey is the public key of the host's messages, as [peers.NAME] verify_key takes it.
// The first call makes the key, and the directory if it is missing.
func (d Data) SigningKey() (string, error) {
	key, _, err := signature.OpenKeyFile(filepath.Join(d.Dir, signature.KeyFileName))
	if err != nil {
		return "", err
	}
	return key.PublicKey().String(), nil
}

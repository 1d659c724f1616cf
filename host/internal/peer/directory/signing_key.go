package directory

import (
	"path/filepath"
	"slices"
	"sync"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/definition/config"
	"skep/host/internal/peer/router"
	"skep/host/internal/peer/signature"
)

// SigningKey signs the requests of this host to others. It opens its key file, or
// makes one, at the first signature.
type SigningKey struct {
	open func() (signature.Key, error)
}

var _ router.Signer = SigningKey{}

// NewSigningKey returns the signing key of a data directory.
func NewSigningKey(dir string, log *audit.Log) SigningKey {
	return SigningKey{open: sync.OnceValues(func() (signature.Key, error) {
		key, made, err := signature.OpenKeyFile(filepath.Join(dir, signature.KeyFileName))
		if err == nil && made {
			err = log.Record(audit.Entry{Act: "key.create", Outcome: audit.Done, Target: signature.KeyFileName})
		}
		return key, err
	})}
}

// Sign implements [router.Signer].
func (k SigningKey) Sign(wrapper []byte, route signature.Route, at time.Time) (string, error) {
	key, err := k.open()
	if err != nil {
		return "", err
	}
	return key.Sign(wrapper, route, at)
}

// OpenIfNeeded opens the key if the configuration asks for signatures, so that an
// unusable key fails the start of the host instead of a delivery.
func (k SigningKey) OpenIfNeeded(cfg *config.Config) error {
	verified := func(p config.Peer) bool { return p.VerifyKey != "" }
	if !cfg.Server.SignLetters && !slices.ContainsFunc(cfg.Peers, verified) {
		return nil
	}
	_, err := k.open()
	return err
}

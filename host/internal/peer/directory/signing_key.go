package directory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/definition/config"
	"skep/host/internal/peer/router"
	"skep/host/internal/peer/signature"
	"skep/host/internal/swarm"
)

// SigningKey signs the requests of this host to others. It opens its key, or makes one, at the
// first signature. It is safe for concurrent use.
type SigningKey struct {
	opt SigningKeyOptions

	// opening is held while the key is opened. It comes before mu.
	opening sync.Mutex
	mu      sync.Mutex
	key     *signature.Key
}

// SigningKeyOptions are where a signing key is kept. Audit and Logger are required.
type SigningKeyOptions struct {
	// Dir is the data directory.
	Dir string
	// Shared is where hosts that share a store have their key. With nil it is a file of Dir.
	Shared signature.Store
	Audit  *audit.Log
	Logger *slog.Logger
}

var _ router.Signer = (*SigningKey)(nil)

// NewSigningKey returns the signing key of a host.
func NewSigningKey(opt SigningKeyOptions) *SigningKey { return &SigningKey{opt: opt} }

func (k *SigningKey) file() string { return filepath.Join(k.opt.Dir, signature.KeyFileName) }

// readTimeout bounds a read of the key from the server.
const readTimeout = 10 * time.Second

// Sign implements [router.Signer]. A key that a server has and that cannot be read is [swarm.ErrUnavailable]: an
// operator may mend that, and the letter waits.
func (k *SigningKey) Sign(wrapper []byte, route signature.Route, at time.Time) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), readTimeout)
	defer stop()
	key, err := k.open(ctx)
	if err != nil && k.opt.Shared != nil {
		err = fmt.Errorf("%w: %w", swarm.ErrUnavailable, err)
	}
	if err != nil {
		return "", err
	}
	return key.Sign(wrapper, route, at)
}

// current is the key that was opened, nil for none.
func (k *SigningKey) current() *signature.Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.key
}

// open returns the key. An error is not remembered.
func (k *SigningKey) open(ctx context.Context) (signature.Key, error) {
	if key := k.current(); key != nil {
		return *key, nil
	}
	k.opening.Lock()
	defer k.opening.Unlock()
	if key := k.current(); key != nil {
		return *key, nil
	}
	return k.read(ctx)
}

// read opens the key anew. The caller holds opening.
func (k *SigningKey) read(ctx context.Context) (key signature.Key, err error) {
	var made bool
	if k.opt.Shared == nil {
		key, made, err = signature.OpenKeyFile(k.file())
	} else {
		key, made, err = signature.OpenSharedKey(ctx, k.opt.Shared, k.file())
	}
	if err == nil && made {
		err = k.opt.Audit.Record(audit.Entry{Act: "key.create", Outcome: audit.Done, Target: signature.KeyFileName})
	}
	if err != nil {
		return signature.Key{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key = &key
	return key, nil
}

// Refresh reads the key again that another host or a command may have replaced. One that was not asked for yet
// is not read.
func (k *SigningKey) Refresh(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, readTimeout)
	defer stop()
	k.opening.Lock()
	defer k.opening.Unlock()
	old := k.current()
	if old == nil {
		return nil
	}
	key, err := k.read(ctx)
	if err != nil || key.PublicKey() == old.PublicKey() {
		return err
	}
	k.opt.Logger.Info("letters are signed with another key from now on")
	return k.opt.Audit.Record(audit.Entry{Act: "key.rotate", Outcome: audit.Done, Target: signature.KeyFileName})
}

// OpenIfNeeded opens the key if the configuration asks for signatures, so that an unusable key fails the start of
// the host instead of a delivery. It carries the key of a file over to where hosts share one.
func (k *SigningKey) OpenIfNeeded(ctx context.Context, cfg *config.Config) error {
	verified := func(p config.Peer) bool { return p.VerifyKey != "" }
	needed := cfg.Server.SignLetters || slices.ContainsFunc(cfg.Peers, verified)
	if k.opt.Shared == nil {
		if needed {
			_, err := k.open(ctx)
			return err
		}
		return nil
	}
	own, ownErr := signature.ReadKeyFile(k.file())
	if !needed && errors.Is(ownErr, fs.ErrNotExist) {
		return nil
	}
	key, err := k.open(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("open the signing key: %w", err)
	case ownErr != nil:
	case own.PublicKey() == key.PublicKey():
		k.opt.Logger.Info("the key that signs letters is on the server: only an earlier version of skep needs its file, and it may be removed", "file", k.file())
	default:
		k.opt.Logger.Warn("this host signs with the key on the server, and not with the one in its file: remove the file, and give peers that have its key what skep peer key prints", "file", k.file())
	}
	return nil
}

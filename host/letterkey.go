package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"skep/host/internal/audit"
	"skep/host/internal/config"
	"skep/host/internal/envelope"
	"skep/host/internal/rest"
	"skep/host/internal/router"
)

// letterKeyFile holds the key with which a host signs its letters.
const letterKeyFile = "letters.key"

// LetterKey is the public key of a data directory's letters, as [peers.NAME]
// verify_key takes it. The first call makes the key, in a directory that need not
// be there.
func (d Data) LetterKey() (string, error) {
	key, _, err := openLetterKey(d.Dir)
	if err != nil {
		return "", err
	}
	return key.Public().String(), nil
}

// openLetterKey reads the key in a data directory, or makes one.
func openLetterKey(dir string) (key envelope.Key, made bool, err error) {
	path := filepath.Join(dir, letterKeyFile)
	key, err = readLetterKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return key, false, err
	}
	key = envelope.NewKey()
	if err = writeLetterKey(path, key.File()); errors.Is(err, fs.ErrExist) {
		key, err = readLetterKey(path) // somebody else came first
		return key, false, err
	}
	if err != nil {
		return key, false, fmt.Errorf("write the key of the letters: %w", err)
	}
	return key, true, nil
}

func readLetterKey(path string) (key envelope.Key, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return key, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return key, fmt.Errorf("others could read the key of the letters (mode %#o): run chmod 600 %s", mode, path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return key, err
	}
	if key, err = envelope.ParseKey(raw); err != nil {
		return key, fmt.Errorf("%s: %w; put a copy of the key back, or delete the file to get a new key, which every peer has to be told", path, err)
	}
	return key, nil
}

// writeLetterKey makes a file that is not there.
func writeLetterKey(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// letterKey signs the letters of a host, with a key that is there when the first
// one is signed.
type letterKey struct {
	dir   string
	audit *audit.Log
	open  func() (envelope.Key, error)
}

var _ router.Signer = letterKey{}

func newLetterKey(dir string, log *audit.Log) letterKey {
	k := letterKey{dir: dir, audit: log}
	k.open = sync.OnceValues(k.load)
	return k
}

func (k letterKey) load() (envelope.Key, error) {
	key, made, err := openLetterKey(k.dir)
	if err == nil && made {
		err = k.audit.Record(audit.Entry{Act: "key.create", Outcome: audit.Done, Target: letterKeyFile})
	}
	return key, err
}

// Sign implements [router.Signer].
func (k letterKey) Sign(wrapper []byte, way envelope.Way, at time.Time) (string, error) {
	key, err := k.open()
	if err != nil {
		return "", err
	}
	return key.Sign(wrapper, way, at)
}

// needed says whether a file asks for signatures, so that a key which cannot be
// used is found before letters go out.
func (k letterKey) needed(cfg *config.Config) error {
	signs := func(p config.Peer) bool { return p.VerifyKey != "" }
	if !cfg.Server.SignLetters && !slices.ContainsFunc(cfg.Peers, signs) {
		return nil
	}
	_, err := k.open()
	return err
}

// seals looks at what other swarms have signed.
type seals struct{ peers *peers }

var _ rest.Seals = seals{}

// Verify implements [rest.Seals].
func (s seals) Verify(wrapper []byte, from, to string, back bool, now time.Time) error {
	text := s.peers.verifyKey(from)
	if text == "" {
		return nil
	}
	key, err := envelope.ParsePublic(text)
	if err != nil {
		return fmt.Errorf("[peers.%s] verify_key: %w", from, err)
	}
	return key.Verify(wrapper, envelope.Way{Back: back, Target: to}, now)
}

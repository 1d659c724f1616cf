package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"skep/host/internal/definition/config"
	"skep/host/internal/peer/registry"
	"skep/host/internal/peer/signature"
	"skep/host/internal/store/atomicfile"
	"skep/host/internal/store/sqlite"
)

// SigningKey is the public key of the host's messages, as [peers.NAME] verify_key takes it.
// The first call makes the key, and the directory if it is missing. On a server it is the key of all hosts.
func (d Data) SigningKey(ctx context.Context) (public string, err error) {
	var key signature.Key
	if d.Store.Driver == config.DriverPostgres {
		err = d.withSecrets(ctx, func(s *sqlite.ServerSecrets) error {
			key, _, err = signature.OpenSharedKey(ctx, s, d.signingKeyFile())
			return err
		})
	} else {
		key, _, err = signature.OpenKeyFile(d.signingKeyFile())
	}
	if err != nil {
		return "", err
	}
	return key.PublicKey().String(), nil
}

// RotateSigningKey makes a new key of the host's messages in place of the one that it has, and returns its public
// half. Hosts that share a server sign with it as soon as they are woken, another host once it is started again. A file
// with the key from before the directory had a server goes: it would sign again where a store has no key.
func (d Data) RotateSigningKey(ctx context.Context) (public string, err error) {
	defer func() { err = d.record("key.rotate", signature.KeyFileName, err) }()
	key := signature.NewKey()
	if d.Store.Driver == config.DriverPostgres {
		err = d.withSecrets(ctx, func(s *sqlite.ServerSecrets) error {
			return s.ReplaceSecret(ctx, signature.KeyFileName, key.PEM())
		})
		if err == nil {
			err = removeFile(d.signingKeyFile())
		}
	} else if err = sqlite.PrepareDir(d.Dir); err == nil {
		err = atomicfile.Replace(d.signingKeyFile(), key.PEM())
	}
	if err != nil {
		return "", fmt.Errorf("replace the signing key: %w", err)
	}
	return key.PublicKey().String(), nil
}

// removeFile removes a file, if it is there.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d Data) signingKeyFile() string { return d.file(signature.KeyFileName) }

// readSecrets returns what the files of a directory have that is a secret of hosts on a server.
func (d Data) readSecrets() (map[string][]byte, error) {
	swarms, err := registry.RecordsOf(filepath.Join(d.Dir, RegistryName))
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for name, text := range swarms {
		all[sqlite.SwarmSecret+name] = text
	}
	key, err := signature.ReadKeyFile(d.signingKeyFile())
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	all[signature.KeyFileName] = key.PEM()
	return all, nil
}

// keepSecrets writes the files of [Data.readSecrets]. A key that the directory has gives way: peers know the one that
// signed last.
func (d Data) keepSecrets(secrets map[string][]byte) error {
	var swarms []registry.Record
	for name, text := range secrets {
		if name, ok := strings.CutPrefix(name, sqlite.SwarmSecret); ok {
			swarms = append(swarms, registry.Record{Name: name, Text: text})
		}
	}
	if len(swarms) > 0 {
		text, err := registry.FileOf(swarms)
		if err == nil {
			err = atomicfile.Replace(filepath.Join(d.Dir, RegistryName), text)
		}
		if err != nil {
			return err
		}
	}
	if key := secrets[signature.KeyFileName]; key != nil {
		return atomicfile.Replace(d.signingKeyFile(), key)
	}
	return nil
}

// backUpSigningKey copies the key to a new file, if there is one.
func (d Data) backUpSigningKey(ctx context.Context, r *sqlite.Reader, to string) error {
	s := r.Secrets()
	if s == nil {
		return copyFile(d.signingKeyFile(), to, "the signing key")
	}
	key, err := s.ReadSecret(ctx, signature.KeyFileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return atomicfile.CreateBytes(to, 0o600, key)
}

// restoreSigningKey copies the key of a backup, unless the directory has its own.
func (d Data) restoreSigningKey(from string) error {
	if _, err := os.Lstat(d.signingKeyFile()); err == nil {
		return nil
	}
	return copyFile(from, d.signingKeyFile(), "the signing key")
}

// withSecrets opens the secrets of a server's hosts, beside hosts that run.
func (d Data) withSecrets(ctx context.Context, do func(*sqlite.ServerSecrets) error) error {
	if err := d.hasStore(ctx); err != nil {
		return fmt.Errorf("%w: start the host once, which makes one", err)
	}
	ring, err := ringOptions(d.Store.Keyring)
	if err != nil {
		return &KeyError{err}
	}
	s, err := sqlite.OpenServerSecrets(ctx, server(d.Store), ring.KEK)
	if err != nil {
		return err
	}
	return asKeyError(errors.Join(do(s), s.Close()))
}

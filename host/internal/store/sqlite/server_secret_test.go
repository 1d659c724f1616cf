package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"

	"skep/host/internal/store/keyring"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
)

// TestServerSecrets: of hosts and commands that keep a secret at once all get the same one. It is wrapped on the
// server, opens under its name and with its key only, and the store's own secret is none of them.
func TestServerSecrets(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	one, other := openShared(t, dsn), openShared(t, dsn)
	kek := bytes.Repeat([]byte{7}, 32)
	beside, err := OpenServerSecrets(t.Context(), Server{DSN: dsn}, kek)
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	all := []*ServerSecrets{one.Secrets(), other.Secrets(), beside}
	if _, err := beside.ReadSecret(t.Context(), "a key"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a secret that nobody has kept: %v", err)
	}
	if _, err := beside.ReadSecret(t.Context(), "store"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store's secret: %v", err)
	}
	kept, makers := make([][]byte, len(all)), make([]bool, len(all))
	var at sync.WaitGroup
	for i, s := range all {
		at.Go(func() {
			var err error
			if kept[i], makers[i], err = s.KeepSecret(t.Context(), "a key", fmt.Append(nil, "key of ", i)); err != nil {
				t.Error(err)
			}
		})
	}
	at.Wait()
	makersCount := 0
	for i, made := range makers {
		if !bytes.Equal(kept[i], kept[0]) {
			t.Errorf("%q and %q are kept", kept[0], kept[i])
		}
		if made {
			makersCount++
		}
	}
	if makersCount != 1 {
		t.Errorf("%d have made it", makersCount)
	}
	var raw []byte
	if err := beside.db.QueryRow("SELECT value FROM secrets WHERE name = 'a key'").Scan(&raw); err != nil || bytes.Contains(raw, []byte("key of")) {
		t.Errorf("the server has %q, %v", raw, err)
	}
	if _, err := keyring.UnwrapSecret(kek, raw, "b key"); !errors.Is(err, keyring.ErrWrongKEK) {
		t.Errorf("under another name: %v", err)
	}
	foreign := &ServerSecrets{db: beside.db, kek: testKEK(1)}
	if _, _, err := foreign.KeepSecret(t.Context(), "a key", nil); !errors.Is(err, keyring.ErrWrongKEK) {
		t.Errorf("with another key: %v", err)
	}
	if _, err := beside.db.Exec("INSERT INTO meta VALUES ('moved', 1)"); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenServerSecrets(t.Context(), Server{DSN: dsn}, kek); !errors.Is(err, ErrMoved) {
		t.Errorf("the secrets of a store that was moved away: %v", err)
	}
}

// TestServerSecretReplaced: a secret that is replaced raises a version, so that hosts read it again.
func TestServerSecretReplaced(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	s := openShared(t, server.DSN()).Secrets()
	version := pgtest.Number(t, server.DSN(), "SELECT coalesce(sum(n), 0)::bigint FROM changes WHERE name = 'secrets'")
	before := version()
	for _, text := range []string{"first", "second"} {
		if err := s.ReplaceSecret(t.Context(), "a key", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.ReadSecret(t.Context(), "a key"); string(got) != text || err != nil {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	if got := version(); got != before+2 {
		t.Errorf("the version went from %d to %d", before, got)
	}
	server.Kill(t)
	if _, err := s.ReadSecret(t.Context(), "a key"); !errors.Is(err, swarm.ErrUnavailable) {
		t.Errorf("read without a server: %v", err)
	}
	if err := s.ReplaceSecret(t.Context(), "a key", []byte("lost")); !errors.Is(err, swarm.ErrUnavailable) {
		t.Errorf("replaced without a server: %v", err)
	}
	server.Start(t)
	if got, err := s.ReadSecret(t.Context(), "a key"); string(got) != "second" || err != nil {
		t.Errorf("%q, %v after the server was away", got, err)
	}
}

// TestServerSecretsRewrapped: secrets are wrapped anew with the keyring, also where no tenant has a key yet, and where
// it was broken off in between.
func TestServerSecretsRewrapped(t *testing.T) {
	t.Parallel()
	at, to := Server{DSN: pgtest.Schema(t)}, testKEK(9)
	s := openSealedServer(t, at)
	if _, _, err := s.Secrets().KeepSecret(t.Context(), "a key", []byte("secret")); err != nil {
		t.Fatal(err)
	}
	rewrap := func(from, to []byte, want bool) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, changed, err := RewrapServer(t.Context(), at, from, to); changed != want || err != nil {
			t.Errorf("RewrapServer() = %v, %v, want %v", changed, err, want)
		}
		var err error
		if s, err = OpenServer(t.Context(), at, Options{Keyring: &keyring.Options{KEK: to}}); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Secrets().ReadSecret(t.Context(), "a key"); string(got) != "secret" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	rewrap(testKEK(1), to, true)
	copiedSteps(t, s, 0, 1)
	rewrap(to, testKEK(1), true)
	// Broken off: the secrets are wrapped with the new key, the keyring is not.
	if _, err := rewrapSecrets(t.Context(), s.writer.conn, testKEK(1), to); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Secrets().ReadSecret(t.Context(), "a key"); !errors.Is(err, keyring.ErrWrongKEK) {
		t.Errorf("a secret that is wrapped with the next key: %v", err)
	}
	rewrap(testKEK(1), to, true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

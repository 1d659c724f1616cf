package signature_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/peer/signature"
)

var errAway = errors.New("the store is away")

// memory is a store in memory, which hosts share. lost is how many answers to a kept secret are lost.
type memory struct {
	mu   sync.Mutex
	text []byte
	away bool
	lost int
}

func (m *memory) ReadSecret(context.Context, string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.away:
		return nil, errAway
	case m.text == nil:
		return nil, fs.ErrNotExist
	}
	return m.text, nil
}

func (m *memory) KeepSecret(_ context.Context, _ string, text []byte) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	made := m.text == nil
	if made {
		m.text = text
	}
	if m.lost > 0 {
		m.lost--
		return nil, false, errAway
	}
	return m.text, made, nil
}

func keyFile(t *testing.T) (path string, key signature.Key) {
	t.Helper()
	path = filepath.Join(t.TempDir(), signature.KeyFileName)
	key, _, err := signature.OpenKeyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, key
}

// TestSharedKey: the key that a host had in a file is the one of all hosts, whatever is lost in between, and a host
// whose own key came too late has the others'.
func TestSharedKey(t *testing.T) {
	t.Parallel()
	m := &memory{lost: 1}
	first, own := keyFile(t)
	if _, _, err := signature.OpenSharedKey(t.Context(), m, first); !errors.Is(err, errAway) {
		t.Errorf("the answer was lost: %v", err)
	}
	late, _ := keyFile(t)
	for _, path := range []string{first, late, filepath.Join(t.TempDir(), "none")} {
		key, made, err := signature.OpenSharedKey(t.Context(), m, path)
		if err != nil || made || key.PublicKey() != own.PublicKey() {
			t.Errorf("%s: %v, made %v, %v, want %v", path, key, made, err, own)
		}
	}
	if left, err := signature.ReadKeyFile(first); err != nil || left.PublicKey() != own.PublicKey() {
		t.Errorf("the file has %v, %v", left, err)
	}
}

// TestSharedKeyAtOnce: hosts that start at once on an empty store, some with a key of their own, have one key.
func TestSharedKeyAtOnce(t *testing.T) {
	t.Parallel()
	m := &memory{}
	keys := make([]signature.Key, 8)
	var all sync.WaitGroup
	for i := range keys {
		path := filepath.Join(t.TempDir(), "none")
		if i%2 == 0 {
			path, _ = keyFile(t)
		}
		all.Go(func() {
			var err error
			if keys[i], _, err = signature.OpenSharedKey(t.Context(), m, path); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, key := range keys {
		if key.PublicKey() != keys[0].PublicKey() {
			t.Errorf("%v and %v", keys[0], key)
		}
	}
}

// TestSharedKeyFaults: a store that is away makes no key, and neither does a file that cannot be used. What a store has
// and cannot be read is named with what to do.
func TestSharedKeyFaults(t *testing.T) {
	t.Parallel()
	m := &memory{away: true}
	path, _ := keyFile(t)
	if _, _, err := signature.OpenSharedKey(t.Context(), m, path); !errors.Is(err, errAway) || m.text != nil {
		t.Errorf("a store that is away: %v, it has %q", err, m.text)
	}
	m.away = false
	if err := os.WriteFile(path, []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := signature.OpenSharedKey(t.Context(), m, path); err == nil || !strings.Contains(err.Error(), path) || m.text != nil {
		t.Errorf("a damaged file: %v, the store has %q", err, m.text)
	}
	m.text = bytes.Repeat([]byte("x"), 9)
	if _, _, err := signature.OpenSharedKey(t.Context(), m, path); err == nil || !strings.Contains(err.Error(), "skep peer key rotate") {
		t.Errorf("a damaged row: %v", err)
	}
}

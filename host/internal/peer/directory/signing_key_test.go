package directory

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/definition/config"
	"skep/host/internal/peer/signature"
	"skep/host/internal/swarm"
)

// secretStore is a store in memory. away is how often it fails, with err or [swarm.ErrUnavailable].
type secretStore struct {
	mu   sync.Mutex
	text []byte
	away int
	err  error
}

func (s *secretStore) fail() error {
	if s.away == 0 {
		return nil
	}
	s.away--
	return cmp.Or(s.err, swarm.ErrUnavailable)
}

func (s *secretStore) ReadSecret(context.Context, string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail(); err != nil {
		return nil, err
	}
	if s.text == nil {
		return nil, fs.ErrNotExist
	}
	return s.text, nil
}

func (s *secretStore) KeepSecret(_ context.Context, _ string, text []byte) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail(); err != nil {
		return nil, false, err
	}
	made := s.text == nil
	if made {
		s.text = text
	}
	return s.text, made, nil
}

func openSigningKey(t *testing.T, s signature.Store) (*SigningKey, string) {
	t.Helper()
	dir := t.TempDir()
	log, err := audit.Open(filepath.Join(dir, audit.Name), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return NewSigningKey(SigningKeyOptions{Dir: dir, Shared: s, Audit: log, Logger: slog.New(slog.DiscardHandler)}), dir
}

// wantSignedBy wants the next signature to be one of the key in a store.
func wantSignedBy(t *testing.T, k *SigningKey, text []byte) {
	t.Helper()
	wrapper, route, now := []byte(`{"metadata":{}}`), signature.Route{Target: "depot"}, time.Now()
	if _, err := k.Sign(wrapper, route, now); err != nil {
		t.Fatal(err)
	}
	want, err := signature.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := k.current(); got == nil || got.PublicKey() != want.PublicKey() {
		t.Errorf("signed by %v, want %v", got, want)
	}
}

// TestSharedSigningKey: a store that fails for a moment is asked again at the next signature, and a key that was replaced
// signs once it was read again. A read that fails leaves the key.
func TestSharedSigningKey(t *testing.T) {
	t.Parallel()
	s := &secretStore{away: 1, err: errors.New("it is wrapped with another key")}
	k, dir := openSigningKey(t, s)
	if err := k.Refresh(t.Context()); err != nil || s.away != 1 {
		t.Errorf("a key that nobody has asked for was read: %v", err)
	}
	if _, err := k.Sign([]byte("{}"), signature.Route{}, time.Now()); !errors.Is(err, swarm.ErrUnavailable) || !errors.Is(err, s.err) {
		t.Errorf("signed without a store: %v", err)
	}
	s.err = nil
	if _, err := k.Sign([]byte("{}"), signature.Route{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	wantSignedBy(t, k, s.text)
	before := s.text
	s.text, s.away = signature.NewKey().PEM(), 1
	if err := k.Refresh(t.Context()); !errors.Is(err, swarm.ErrUnavailable) {
		t.Errorf("read without a store: %v", err)
	}
	wantSignedBy(t, k, before)
	for range 2 {
		if err := k.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wantSignedBy(t, k, s.text)
	wantKeyActs(t, dir, "key.create", "key.rotate")
}

// wantKeyActs wants the audit log of a directory to have acts.
func wantKeyActs(t *testing.T, dir string, want ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, audit.Name))
	if err != nil {
		t.Fatal(err)
	}
	var acts []string
	for _, found := range regexp.MustCompile(`"act":"(.*?)"`).FindAllSubmatch(text, -1) {
		acts = append(acts, string(found[1]))
	}
	if !slices.Equal(acts, want) {
		t.Errorf("the audit log has %q, want %q", acts, want)
	}
}

// TestSigningKeyIsCarriedOver: the key in the file of a host goes to the store at its start, also if nothing is to be
// signed now. Without a file nothing is made that is not needed.
func TestSigningKeyIsCarriedOver(t *testing.T) {
	t.Parallel()
	s := &secretStore{}
	k, dir := openSigningKey(t, s)
	if err := k.OpenIfNeeded(t.Context(), &config.Config{}); err != nil || s.text != nil {
		t.Errorf("a key was made: %q, %v", s.text, err)
	}
	own, _, err := signature.OpenKeyFile(filepath.Join(dir, signature.KeyFileName))
	if err != nil {
		t.Fatal(err)
	}
	s.away = 1
	if err := k.OpenIfNeeded(t.Context(), &config.Config{}); !errors.Is(err, swarm.ErrUnavailable) {
		t.Errorf("started without a store: %v", err)
	}
	if err := k.OpenIfNeeded(t.Context(), &config.Config{}); err != nil || string(s.text) != string(own.PEM()) {
		t.Errorf("the store has %q, %v", s.text, err)
	}
	wantKeyActs(t, dir)
	other, dir := openSigningKey(t, s)
	wantSignedBy(t, other, own.PEM())
	wantKeyActs(t, dir)
}

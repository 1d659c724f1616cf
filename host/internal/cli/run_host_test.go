package cli

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"skep/host/internal/definition/config"
)

func TestOwnKey(t *testing.T) {
	t.Parallel()
	const known = "a-key-that-is-long-enough"
	alice := config.AuthKey{ID: "alice", Role: config.RoleUser, SHA256: sha256.Sum256([]byte(known))}
	with := func(keys ...config.AuthKey) *config.Config { return &config.Config{Auth: config.Auth{Keys: keys}} }

	a := newApp(newShell(nil).Env)
	if cfg, token := a.addRunKey(with()); token != "" || len(cfg.Auth.Keys) != 0 {
		t.Errorf("without keys: token %q, %d keys; the host makes one", token, len(cfg.Auth.Keys))
	}
	given := with(alice)
	cfg, token := a.addRunKey(given)
	if !hasKey(cfg, token) || len(cfg.Auth.Keys) != 2 || len(given.Auth.Keys) != 1 {
		t.Errorf("with keys: %d keys, %d in the original; want one more, in a copy", len(cfg.Auth.Keys), len(given.Auth.Keys))
	}
	if _, again := a.addRunKey(given); again == token {
		t.Error("two runs have the same key")
	}
	holder := newApp(newShell(map[string]string{"SKEP_TOKEN": known}).Env)
	if cfg, token := holder.addRunKey(given); token != known || len(cfg.Auth.Keys) != 1 {
		t.Errorf("a holder of a key: token %q, %d keys", token, len(cfg.Auth.Keys))
	}
	stranger := newApp(newShell(map[string]string{"SKEP_TOKEN": "of another host"}).Env)
	if cfg, token := stranger.addRunKey(given); token == "of another host" || !hasKey(cfg, token) {
		t.Error("a token of another host is used for this one")
	}
}

func TestCacheDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "file", "")
	for cache, want := range map[string]string{
		"": "", filepath.Join(dir, "new"): filepath.Join(dir, "new"), filepath.Join(dir, "file", "x"): "",
	} {
		s := newShell(nil)
		s.Cache = cache
		if got := newApp(s.Env).cacheDir(); got != want {
			t.Errorf("cache %q: %q, want %q", cache, got, want)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "new"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the cache is %v, %v; want it private", info, err)
	}
}

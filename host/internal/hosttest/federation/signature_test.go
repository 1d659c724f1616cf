package federation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/datadir"
	"skep/host/internal/hosttest"
)

// pin lets a host ask for the signature of another, by that other's key.
func (u *federation) pin(t *testing.T, name, peer string) {
	t.Helper()
	key, err := datadir.Data{Dir: u.sites[peer].Data, Store: u.sites[peer].Config.Store}.SigningKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u.edit(t, name, "[peers."+peer+"]\n", fmt.Sprintf("[peers.%s]\nverify_key = %q\n", peer, key))
}

// edit changes a host's file, and starts it again.
func (u *federation) edit(t *testing.T, name, before, after string) {
	t.Helper()
	s := u.sites[name]
	raw, err := os.ReadFile(filepath.Join(s.Dir, "swarm.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), before) {
		t.Fatalf("no %q in the file of %s", before, name)
	}
	s.Write(strings.Replace(string(raw), before, after, 1))
	u.restart(name)
}

// Two hosts that have each other's key work together, and restarts change no key.
// One that is asked for signatures and does not know is refused, until it signs.
func TestSignedWrappers(t *testing.T) {
	t.Parallel()
	u := newFederation(t, "1m", []string{"hive", "depot", "yard"})
	u.pin(t, "hive", "depot")
	u.pin(t, "depot", "hive")
	u.pin(t, "hive", "yard")
	if a := u.ask(t, "hive", "t1", hosttest.RequestOf("math@depot", "x")); a.Body != "boss got [Re: s] echo: x" {
		t.Errorf("answer %+v", a)
	}
	a := u.ask(t, "yard", "t2", hosttest.RequestOf("math@hive", "x"))
	if !strings.Contains(a.Body, "::router_error::") || !strings.Contains(a.Body, "invalid signature") || !strings.Contains(a.Body, "it is not signed") {
		t.Errorf("answer %+v", a)
	}
	hosttest.Eventually(t, "a line in the audit log", func() bool {
		audit, err := os.ReadFile(filepath.Join(u.sites["hive"].Data, "audit.log"))
		return err == nil && strings.Contains(string(audit), "invalid signature: the message does not count as one of swarm 'yard': it is not signed")
	})
	u.edit(t, "yard", "[swarm]\n", "[server]\nsign_letters = true\n[swarm]\n")
	if a := u.ask(t, "yard", "t3", hosttest.RequestOf("math@hive", "x")); a.Body != "boss got [Re: s] echo: x" {
		t.Errorf("answer %+v", a)
	}
	if a := u.ask(t, "depot", "t4", hosttest.RequestOf("math@yard", "x")); a.Body != "boss got [Re: s] echo: x" {
		t.Errorf("answer %+v", a)
	}
}

// A key file is made once, for its owner alone; one that is damaged, or open to
// others, is named before anything is sent.
func TestSigningKey(t *testing.T) {
	t.Parallel()
	d := datadir.Data{Dir: filepath.Join(t.TempDir(), "new")}
	key, err := d.SigningKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := d.SigningKey(t.Context()); err != nil || again != key {
		t.Errorf("%q, then %q: %v", key, again, err)
	}
	file := filepath.Join(d.Dir, "letters.key")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %v", info, err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := d.SigningKey(t.Context()); err == nil || !strings.Contains(err.Error(), "chmod 600 "+file) {
		t.Errorf("open to others: %v", err)
	}
	for content, want := range map[string]string{"": "PEM block", "half a key": "PEM block"} {
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := d.SigningKey(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v", content, err)
		}
	}
	if _, err := (datadir.Data{Dir: filepath.Join(file, "below")}).SigningKey(t.Context()); err == nil {
		t.Error("a key in a directory that cannot be")
	}
}

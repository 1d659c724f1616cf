package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A certificate that is not valid when the file is to be used is a fault of its
// line; for a host that runs already it is not.
func TestCertificatePeriod(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"cert.pem", "key.pem"} {
		raw, err := os.ReadFile(filepath.Join("testdata/valid/tls", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := readValid(t, "minimal.toml") + "[server.tls]\ncert = \"" + dir + "/cert.pem\"\nkey = \"" + dir + "/key.pem\"\n"
	line := strings.Count(text[:strings.Index(text, "\ncert = ")], "\n") + 2
	load := func(now time.Time) (*Config, error) {
		opt := testOptions
		opt.Now = now
		return Parse("swarm.toml", []byte(text), "testdata/valid", opt)
	}
	for when, want := range map[time.Time]string{
		time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC): "server.tls.cert: the certificate in " + dir + "/cert.pem is not valid before 2",
		time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC): "server.tls.cert: the certificate in " + dir + "/cert.pem expired on 2",
	} {
		_, err := load(when)
		var faults Faults
		if !errors.As(err, &faults) || len(faults) != 1 || faults[0].Line != line || !strings.HasPrefix(faults[0].Message, want) {
			t.Errorf("in %d: %v, want line %d: %s", when.Year(), err, line, want)
		}
	}
	c, err := load(time.Time{})
	if err != nil || len(c.Warnings) != 0 {
		t.Fatalf("%v, %v", c, err)
	}
	if err := os.Chmod(filepath.Join(dir, "key.pem"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err = load(time.Time{})
	if err != nil || len(c.Warnings) != 1 || c.Warnings[0].Line != line+1 || !strings.Contains(c.Warnings[0].Message, "everybody on this machine can read the key") {
		t.Errorf("a key for all to read: %v, %v", c, err)
	}
}

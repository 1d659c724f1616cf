package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The files for calls of a peer are read with the file that names them; what is wrong
// with them is its fault.
func TestPeerFiles(t *testing.T) {
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
	const cert, key = "client_cert = \"DIR/cert.pem\"\n", "client_key = \"DIR/key.pem\"\n"
	for text, want := range map[string]string{
		"ca_file = \"DIR/cert.pem\"\n" + cert + key: "",
		"ca_file = \"DIR/none.pem\"\n":              "does not exist",
		"ca_file = \"DIR/key.pem\"\n":               "peers.depot: DIR/key.pem holds no certificate in PEM form",
		cert:                                        "peers.depot: a client certificate needs its key",
		key:                                         "peers.depot: a client certificate needs its key",
		"client_cert = \"DIR/key.pem\"\n" + key:     "are no certificate and its key",
		"ca_file = \"DIR/cert.pem\"\nhttp":          "peers.depot: ca_file, client_cert and client_key need an https base_url",
	} {
		text, plain := strings.CutSuffix(text, "http")
		base := map[bool]string{false: "https://depot.example", true: "http://127.0.0.1:8100"}[plain]
		file := readValid(t, "minimal.toml") + "[peers.depot]\nbase_url = \"" + base + "\"\n" + strings.ReplaceAll(text, "DIR", dir)
		c, err := Parse("swarm.toml", []byte(file), "testdata/valid", testOptions)
		var faults Faults
		switch {
		case want != "" && (!errors.As(err, &faults) || len(faults) != 1 || !strings.Contains(faults[0].Message, strings.ReplaceAll(want, "DIR", dir))):
			t.Errorf("%s%v, want %q", text, err, want)
		case want == "" && (err != nil || c.Peers[0].TLS.RootCAs == nil || len(c.Peers[0].TLS.Certificates) != 1):
			t.Errorf("%s%v, %+v", text, err, c)
		}
	}
	late := testOptions
	late.Now = time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
	file := readValid(t, "minimal.toml") + "[peers.depot]\nbase_url = \"https://depot.example\"\n" + strings.ReplaceAll(cert+key, "DIR", dir)
	if _, err := Parse("swarm.toml", []byte(file), "testdata/valid", late); err == nil || !strings.Contains(err.Error(), "expired on 2") {
		t.Errorf("an expired certificate: %v", err)
	}
}

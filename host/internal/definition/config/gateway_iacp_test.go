package config

import (
	"fmt"
	"strings"
	"testing"
)

// I-028, I-050: a partner that is called has an address of the protocol, and over a network
// it has TLS.
func TestIACPAddress(t *testing.T) {
	t.Parallel()
	const table = "[gateways.iacp]\n[gateways.iacp.partners.mill]\n"
	const form = `gateways.iacp.partners.mill.url must be an address as in "iacp://hive.example:9000"`
	for line, want := range map[string]string{
		`url = "iacps://mill.example:9000"`:                           "",
		`url = "iacps://mill.example:9000/"`:                          "",
		`url = "iacp://127.0.0.1:9000"`:                               "",
		"url = \"iacp://10.0.0.1:9000\"\nallow_private = true":        "",
		`url = "iacp://mill.example:9000"`:                            "over iacp anybody on the way could read the token; use iacps",
		`url = "iacps://mill.example"`:                                form,
		`url = "iacps://mill.example:9000/agents"`:                    form,
		`url = "iacps://mill.example:90000"`:                          form,
		`url = "https://mill.example:9000"`:                           form,
		`url = "iacps://ann:secret@mill.example:9000"`:                form,
		"url = \"tcp://mill.example:9000\"\nauth_token = \"a-token\"": form,
	} {
		text := strings.Replace(withUAMP, "uamp", "iacp", 1) + "[server]\nlisten = \"0.0.0.0:8443\"\ntls = { cert = \"tls/cert.pem\", key = \"tls/key.pem\" }\n" + table + line
		_, err := Parse("swarm.toml", []byte(text), "testdata/valid", testOptions)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s\n%v, want %q", line, err, want)
		}
	}
}

// A partner at a private or loopback address is called only with allow_private, on a host of
// one machine too: without it there is a warning with the key (G-055).
func TestPartnerAtPrivateAddress(t *testing.T) {
	t.Parallel()
	const want = "is not a public address; it is called only with allow_private = true in [gateways.iacp.partners.mill]"
	for line, warned := range map[string]bool{
		`url = "iacp://127.0.0.1:9000"`:                         true,
		`url = "iacp://localhost:9000"`:                         true,
		`url = "iacps://10.0.0.1:9000"`:                         true,
		"url = \"iacp://127.0.0.1:9000\"\nallow_private = true": false,
		`url = "iacps://mill.example:9000"`:                     false,
	} {
		text := strings.Replace(withUAMP, "uamp", "iacp", 1) + "[gateways.iacp]\n[gateways.iacp.partners.mill]\n" + line
		c, err := Parse("swarm.toml", []byte(text), "testdata/valid", testOptions)
		if err != nil {
			t.Errorf("%s\n%v", line, err)
		} else if got := strings.Contains(c.Warnings.Error(), want); got != warned {
			t.Errorf("%s\nwarnings: %v", line, c.Warnings)
		}
	}
}

// I-050: what is no address is refused as that alone, and an address that other machines reach
// wants TLS.
func TestIACPListen(t *testing.T) {
	t.Parallel()
	const form, secure = `gateways.iacp.listen must be an address as in "127.0.0.1:9000"`, "needs TLS"
	for listen, want := range map[string]string{
		"127.0.0.1:9000": "", "[::1]:0": "", "9000": form, "127.0.0.1": form, "127.0.0.1:": form, ":9000": secure, "0.0.0.0:9000": secure,
	} {
		_, err := Parse("swarm.toml", []byte(strings.Replace(withUAMP, "uamp", "iacp", 1)+"[gateways.iacp]\nlisten = \""+listen+"\"\n"), "testdata/valid", testOptions)
		switch text := fmt.Sprint(err); {
		case want == "" && err != nil, want != "" && !strings.Contains(text, want):
			t.Errorf("%s: %v", listen, err)
		case want == form && strings.Contains(text, secure):
			t.Errorf("%s: %v", listen, err)
		}
	}
}

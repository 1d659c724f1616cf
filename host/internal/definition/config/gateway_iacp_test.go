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
	const ports = `gateways.iacp.listen must have ports from a lower to a higher one, within 1 to 65535, as in "127.0.0.1:9000-9999"`
	for listen, want := range map[string]string{
		"127.0.0.1:9000": "", "[::1]:0": "", "9000": form, "127.0.0.1": form, "127.0.0.1:": form, ":9000": secure, "0.0.0.0:9000": secure,
		"127.0.0.1:9000-9999": "", "[::1]:65535-65535": "", ":9000-9999": secure, "127.0.0.1:9001-9000": ports, "127.0.0.1:0-9": ports,
		"127.0.0.1:9000-65536": ports, "127.0.0.1:9000-": ports, "127.0.0.1:-9": ports, "127.0.0.1:1-2-3": ports,
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

// TestIACPListenDefault (I-050): without an address the connections are at port 9000 of the loopback.
func TestIACPListenDefault(t *testing.T) {
	t.Parallel()
	c, err := Parse("swarm.toml", []byte(strings.Replace(withUAMP, "uamp", "iacp", 1)+"[gateways.iacp]\n"), "testdata/valid", testOptions)
	if err != nil {
		t.Fatal(err)
	}
	if keys, _ := c.Gateways[0].Protocol.(*IACP); keys == nil || keys.Listen != "127.0.0.1:9000" {
		t.Errorf("got %+v", c.Gateways[0])
	}
}

// I-073, I-074: a role stands for the rights of the document's hierarchy, and is refused beside may;
// what is no private key signs nothing.
func TestIACPRole(t *testing.T) {
	t.Parallel()
	parse := func(line string) (*Config, error) {
		text := strings.Replace(withUAMP, "uamp", "iacp", 1) + "[gateways.iacp]\n[gateways.iacp.partners.mill]\n" + line
		return Parse("swarm.toml", []byte(text), "testdata/valid", testOptions)
	}
	for line, want := range map[string]string{
		"":               "ask",
		`role = "guest"`: "ask",
		`role = "user"`:  "ask tell tools",
		`role = "admin"`: "ask tell tools workflows broadcast relay",
	} {
		c, err := parse(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got := strings.Join(c.Gateways[0].Partners[0].May, " "); got != want {
			t.Errorf("%s: it may %s, want %s", line, got, want)
		}
	}
	for line, want := range map[string]string{
		"role = \"user\"\nmay = [\"ask\"]": "gateways.iacp.partners.mill.role and may both name its rights",
		`sign = "a word"`:                  `gateways.iacp.partners.mill.sign must be a private JSON Web Key, as in "file::hive.jwk": it is no JSON Web Key`,
		`sign = '{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}'`: "it is no private key of Ed25519 or P-256",
		`role = "root"`: `gateways.iacp.partners.mill.role`,
	} {
		if _, err := parse(line); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

package config

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway/uamp/seal"
)

const withUAMP = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "bundled:script"
comm_targets = ["boss"]
can_complete_tasks = true
enable_entrypoint = true
expose = ["uamp"]
[[auth.keys]]
id = "lab"
role = "agent"
key = "a-key-that-is-long-enough"
`

// U-040: the gateway needs TLS 1.3 or a loopback address, and a DID whose document is
// on this host.
func TestUAMP(t *testing.T) {
	t.Parallel()
	const table, public = "[gateways.uamp]\n", "[server]\npublic_url = \"https://hive.example:8443\"\n"
	const tls = "listen = \"0.0.0.0:8443\"\ntls = { cert = \"tls/cert.pem\", key = \"tls/key.pem\"MORE }\n"
	for text, want := range map[string]string{
		table:          "gateways.uamp needs a DID: add public_url to [server], or did",
		public + table: "",
		"[server]\npublic_url = \"http://127.0.0.1:8000\"\n" + table:                      "gateways.uamp needs a DID",
		table + `did = "did:web:hive.example"`:                                            "",
		table + `did = "did:web:127.0.0.1%3A8000"`:                                        `its host "127.0.0.1" is not a name`,
		"[server]\npublic_url = \"https://127.0.0.1:8443\"\n" + table:                     "gateways.uamp needs a DID, and did:web:127.0.0.1%3A8443 is none: it is no DID that can be resolved: its host \"127.0.0.1\" is not a name; add did",
		table + `did = "did:web:hive.example:agents"`:                                     "gateways.uamp.did must be the did:web of a host",
		table + `did = "did:key:z6Mk"`:                                                    "gateways.uamp.did must be the did:web of a host",
		public + table + `did = "did:web:hive.example"`:                                   "gateways.uamp.did is did:web:hive.example and public_url https://hive.example:8443: nobody would find its document",
		public + table + `did = "did:web:hive.example%3A8443"`:                            "",
		public + "listen = \"0.0.0.0:8443\"\nplain_http = true\n" + table:                 "gateways.uamp needs TLS: add [server.tls]",
		public + strings.Replace(tls, "MORE", "", 1) + table:                              "",
		public + strings.Replace(tls, "MORE", `, min_version = "1.2"`, 1) + table:         "gateways.uamp needs TLS 1.3: take min_version out of [server.tls]",
		public + table + `hold = "20s"`:                                                   "hold is for protocols whose callers wait for an answer on their request: a2a, acp, amp, mcp; remove the line",
		public + table + "http3 = true":                                                   "gateways.uamp.http3 needs TLS on a loopback address, too: add [server.tls]",
		public + strings.Replace(tls, "MORE", "", 1) + table + "http3 = true":             "",
		public + table + "keep = \"9m\"":                                                  "gateways.uamp.keep is 9m and clock_skew 5m: keep must be at least twice as long",
		public + table + "keep = \"1h\"\nclock_skew = \"31m\"":                            "gateways.uamp.keep is 1h and clock_skew 31m",
		public + table + "keep = \"10m\"\nsessions = 3":                                   "",
		public + table + "[gateways.uamp.partners.lab]\nkeys = [\"no key\"]":              "gateways.uamp.partners.lab.keys[0] must be a public JSON Web Key",
		public + table + "[gateways.uamp.partners.lab]\nkeys = [\"file::keys/shop.jwk\"]": "",
		public + table + "[gateways.uamp.partners.lab]\nkeys = ['{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}']": "lab.keys[0] must be a public JSON Web Key, as in \"file::lab.jwk\": it is not a JSON Web Key: invalid Ed25519 public key, low-order point",
		table + `did = "did:web:hive.example%3A99999"`:                                                                                                            `gateways.uamp.did must be the did:web of a host, as in "did:web:hive.example": it is no DID that can be resolved: its port "99999" is not a number from 1 to 65535`,
		table + `did = "did:web:hive..example"`:                                                                                                                   `its host "hive..example" is not a name`,
		public + table + "[gateways.uamp.partners.lab]\nids = [\"did:web:lab.example%3A99999\"]":                                                                  `gateways.uamp.partners.lab.ids[0]: it is no DID that can be resolved: its port "99999" is not a number from 1 to 65535`,
		public + table + "[gateways.uamp.partners.lab]\nids = [\"did:web:lab.example%3A99999:agents:*\"]":                                                         `gateways.uamp.partners.lab.ids[0]: it is no DID`,
		public + table + "[gateways.uamp.partners.lab]\nids = [\"did:key:z6MkeTG3bFFSLYVU7VqhgZxqr6YzpaGrQtFMh1uvqGy1vDnP\"]":                                     "lab.ids[0]: it is no DID that can be resolved: invalid Ed25519 public key, low-order point",
		public + table + "[gateways.uamp.partners.lab]\nids = [\"did:web:*\", \"did:web:lab.example%3A*\", \"https://lab.example\", \"did:web:lab.example:*:x\"]": "",
	} {
		c, err := Parse("swarm.toml", []byte(withUAMP+text), "testdata/valid", testOptions)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s\n%v, want %q", text, err, want)
		}
		if own := (*UAMP)(nil); err == nil {
			own = c.Gateways[0].Protocol.(*UAMP)
			if !strings.HasPrefix(own.DID, "did:web:") || own.ClockSkew != 5*time.Minute || own.MaxWindow != 1024 || own.RequireCapToken {
				t.Errorf("%s\n%+v", text, own)
			}
		}
	}
}

// Partners of UAMP are tried for longer than an answer may take, and who changes that is
// warned.
func TestUAMPGiveUp(t *testing.T) {
	t.Parallel()
	const partner = "[server]\npublic_url = \"https://hive.example\"\n[gateways.uamp.partners.lab]\nurl = \"https://lab.example\"\n"
	for more, want := range map[string]struct {
		giveUp  time.Duration
		warning bool
	}{
		"": {5 * time.Minute, false}, "timeout = \"5m\"": {5 * time.Minute, false}, "timeout = \"6m\"": {5 * time.Minute, true},
		"give_up = \"30s\"": {30 * time.Second, true}, "give_up = \"30s\"\nretry_in_doubt = false": {30 * time.Second, false},
	} {
		c, err := Parse("swarm.toml", []byte(withUAMP+partner+more), "testdata/valid", testOptions)
		if err != nil {
			t.Fatal(err)
		}
		warned := slices.ContainsFunc(c.Warnings, func(w Fault) bool {
			return strings.Contains(w.Message, "gateways.uamp.partners.lab.give_up is shorter than timeout")
		})
		if got := c.Gateways[0].Partners[0].GiveUp; got != want.giveUp || warned != want.warning {
			t.Errorf("%q: %s, warned %v: %v", more, got, warned, c.Warnings)
		}
	}
}

// TestUAMPPartnerWarnings: a partner whose table cannot do what it seems to is warned of.
func TestUAMPPartnerWarnings(t *testing.T) {
	t.Parallel()
	const partner = "[server]\npublic_url = \"https://hive.example\"\n[gateways.uamp.partners.lab]\n"
	const noIDs, noDID, noURL = "gateways.uamp.partners.lab has no ids", "lab.ids[0] is \"lab\", and no DID", "lab.binding is how url is called"
	for more, want := range map[string]string{
		"": noIDs, `ids = []`: noIDs, `ids = ["lab"]`: noDID, `ids = ["lab", "did:web:*"]`: noDID,
		`ids = ["*"]`: "", `ids = ["di*"]`: "", `ids = ["did:web:lab.example:x"]`: "", `ids = ["did:key:*"]`: "",
		"ids = [\"did:*\"]\nbinding = \"grpc\"": noURL, "ids = [\"did:*\"]\nbinding = \"http\"": "", "ids = [\"did:*\"]\nurl = \"https://lab.example/uamp\"\nbinding = \"grpc\"": "",
	} {
		c, err := Parse("swarm.toml", []byte(withUAMP+partner+more), "testdata/valid", testOptions)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(c.Warnings)
		for _, one := range []string{noIDs, noDID, noURL} {
			if strings.Contains(got, one) != (one == want) {
				t.Errorf("%s: %s, want %q", more, got, want)
			}
		}
	}
	for url, want := range map[string]string{"https://lab.example/v1/messages": "before /v1/messages: write \"https://lab.example\"", "https://lab.example/x/uamp/1/ws/": "before /uamp/1/ws: write \"https://lab.example/x\""} {
		if _, err := Parse("swarm.toml", []byte(withUAMP+partner+"url = \""+url+"\""), "testdata/valid", testOptions); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// U-034: a partner without a url is called at the hosts of its DIDs, and nowhere else.
func TestUAMPHosts(t *testing.T) {
	t.Parallel()
	p := Partner{IDs: []string{"did:web:lab.example:agents:*", "did:web:shop.example%3A8443", "did:web:*.example", "did:web:*", "did:key:z6Mk", "lab.example"}}
	own := &UAMPPartner{}
	if got := strings.Join(own.Hosts(p), " "); got != "https://lab.example https://shop.example:8443" {
		t.Error(got)
	}
	if p.URL = "https://lab.example"; len(own.Hosts(p)) > 0 {
		t.Error("a partner with a url is called elsewhere")
	}
}

// U-052: a partner is called over HTTP/3 at an https URL, or by its DID documents.
func TestUAMPBindingHTTP3(t *testing.T) {
	t.Parallel()
	const partner = "[server]\npublic_url = \"https://hive.example\"\n[gateways.uamp.partners.lab]\nids = [\"did:web:lab.example\"]\nbinding = \"http3\"\n"
	for more, wrong := range map[string]bool{"": false, "url = \"https://lab.example\"": false, "url = \"http://127.0.0.1:8080\"\nallow_private = true": true} {
		_, err := Parse("swarm.toml", []byte(withUAMP+partner+more), "testdata/valid", testOptions)
		if wrong != (err != nil && strings.Contains(err.Error(), `partners.lab.binding is "http3", and url is no https URL`)) || !wrong && err != nil {
			t.Errorf("%q: %v", more, err)
		}
	}
}

// U-041: the credentials with which a partner's token is asked for are whole, and the only ones.
func TestUAMPOAuth(t *testing.T) {
	t.Parallel()
	const partner = "[server]\npublic_url = \"https://hive.example\"\n[gateways.uamp.partners.lab]\nids = [\"did:web:lab.example\"]\nurl = \"https://lab.example\"\n"
	const whole = `oauth = { token_url = "https://login.lab.example/token", client_id = "hive", client_secret = "env::OPS_KEY" }` + "\n"
	for more, want := range map[string]string{
		"": "", whole: "",
		whole + `auth_token = "env::OPS_KEY"`:          "partners.lab.auth_token and oauth both give the bearer token: leave one out",
		`oauth = { scope = "uamp" }`:                   "partners.lab.oauth needs client_secret",
		strings.Replace(whole, "https:", "http:", 1):   "over http anybody on the way could read the secret",
		strings.Replace(whole, "client_id", "user", 1): "client_id",
	} {
		c, err := Parse("swarm.toml", []byte(withUAMP+partner+more), "testdata/valid", testOptions)
		switch {
		case (want == "") != (err == nil), err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v, want %q", more, err, want)
		case more == whole:
			if o := c.Gateways[0].Partners[0].Protocol.(*UAMPPartner).OAuth; o.ClientID != "hive" || o.ClientSecret.Reveal() == "" || o.TokenURL != "https://login.lab.example/token" {
				t.Errorf("%+v", o)
			}
		}
	}
}

// U-042: a partner's capability token can be read and has an end, and one that has expired is
// warned of.
func TestUAMPCapToken(t *testing.T) {
	t.Parallel()
	const partner = "[server]\npublic_url = \"https://hive.example\"\n[gateways.uamp.partners.lab]\nurl = \"https://lab.example\"\n"
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	opt := testOptions
	opt.Now = now
	for name, c := range map[string]struct{ token, ids, fault, warning string }{
		"for its host": {token: capToken(t, now.Add(time.Second)), ids: `ids = ["did:web:lab.example:agents:*"]`},
		"for its id":   {token: capToken(t, now.Add(time.Second)), ids: `ids = ["did:web:lab.example"]`},
		"for any host": {token: capToken(t, now.Add(time.Second)), ids: `ids = ["did:web:*"]`},
		"for another":  {token: capToken(t, now.Add(time.Second)), ids: `ids = ["did:web:shop.example:*"]`, warning: `partners.lab.cap_token is for ["did:web:lab.example"], which is none of ids nor the host of one: the partner will refuse it`},
		"that lasts":   {token: capToken(t, now.Add(time.Second))},
		"that is over": {token: capToken(t, now), warning: "partners.lab.cap_token expired at 2026-01-02T03:04:05Z: nothing is sent to the partner"},
		"without exp":  {token: capToken(t, time.Time{}), fault: "partners.lab.cap_token has no exp"},
		"that is none": {token: "bearer", fault: `partners.lab.cap_token must be a capability token, as in "file::lab.token"`},
	} {
		cfg, err := Parse("swarm.toml", []byte(withUAMP+partner+"cap_token = \""+c.token+"\"\n"+c.ids+"\n"), "testdata/valid", opt)
		if (c.fault == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), c.token+" ")) {
			t.Errorf("a token %s: %v, want %q", name, err, c.fault)
		}
		if err != nil {
			continue
		}
		warned := slices.ContainsFunc(cfg.Warnings, func(w Fault) bool {
			return c.warning != "" && strings.Contains(w.Message, c.warning) || c.warning == "" && strings.Contains(w.Message, "cap_token") && !strings.Contains(w.Message, "stands in this file")
		})
		if warned != (c.warning != "") {
			t.Errorf("a token %s: warnings %v", name, cfg.Warnings)
		}
		if got := cfg.Gateways[0].Partners[0].Protocol.(*UAMPPartner).CapToken; got.Reveal() != c.token {
			t.Errorf("a token %s is %q", name, got.Reveal())
		}
	}
}

// U-042: a file that is read again has no time of its own, and is warned of with that of the clock.
func TestUAMPCapTokenAtReload(t *testing.T) {
	t.Parallel()
	const partner = "[server]\npublic_url = \"https://hive.example\"\n[gateways.uamp.partners.lab]\nurl = \"https://lab.example\"\n"
	for text, want := range map[string]bool{
		capToken(t, time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)): true, capToken(t, time.Date(2200, 1, 2, 3, 4, 5, 0, time.UTC)): false,
	} {
		cfg, err := Parse("swarm.toml", []byte(withUAMP+partner+"cap_token = \""+text+"\"\n"), "testdata/valid", testOptions)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(cfg.Warnings, func(w Fault) bool { return strings.Contains(w.Message, "cap_token expired at ") }); got != want {
			t.Errorf("warned %v, want %v: %v", got, want, cfg.Warnings)
		}
	}
}

// capToken is a capability token of the partner with an end, zero for none.
func capToken(t *testing.T, end time.Time) string {
	t.Helper()
	own, err := seal.NewKey("did:web:lab.example#k", ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := own.Grant(seal.Claims{Issuer: "did:web:lab.example", Audience: []string{"did:web:lab.example"}, Scope: []string{"uamp:ask"}, Expires: end})
	if err != nil {
		t.Fatal(err)
	}
	if !end.IsZero() {
		return text
	}
	parts := strings.Split(text, ".")
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"did:web:lab.example","aud":"did:web:lab.example","scope":"uamp:ask"}`))
	return strings.Join(parts, ".") // a reader without the key does not verify it
}

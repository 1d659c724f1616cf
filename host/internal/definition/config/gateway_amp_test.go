package config

import (
	"strings"
	"testing"
)

// D-M15: a shared key of AMP has 16 bytes at least, and a partner that only signs needs one;
// partners of other protocols have none.
func TestAMPKeys(t *testing.T) {
	t.Parallel()
	const table = "[gateways.amp]\n[gateways.amp.partners.lab]\n"
	for text, want := range map[string]string{
		table: "",
		table + `hmac_key = "a-key-that-is-long-enough"`:                         "",
		table + "hmac_key = \"a-key-that-is-long-enough\"\nhmac_alone = true":    "",
		table + `hmac_key = "short"`:                                             "gateways.amp.partners.lab.hmac_key must have at least 16 bytes",
		table + `hmac_alone = true`:                                              "gateways.amp.partners.lab.hmac_alone needs hmac_key in the same table",
		strings.ReplaceAll(table, "amp", "acp") + `hmac_key = "a-key-of-acp-16"`: "hmac_key binds messages to a shared key; it is for amp alone; remove the line",
	} {
		file := strings.Replace(withUAMP, `expose = ["uamp"]`, "", 1) + text
		_, err := Parse("swarm.toml", []byte(file), "testdata/valid", testOptions)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s\n%v, want %q", text, err, want)
		}
	}
}

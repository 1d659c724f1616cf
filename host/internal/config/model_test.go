package config

import (
	"strings"
	"testing"
)

// One file serves with a provider's key and without, where answers are recorded.
func TestModelKeyBesideCassette(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]string{"env::NO_SUCH_KEY": "", "env::OPS_KEY": "0123456789abcdef-ops", "plain": "plain"} {
		c := mustParse(t, readValid(t, "minimal.toml")+strings.ReplaceAll(`
[models.m]
provider = "openai"
model = "m"
api_key = "REF"
cassette = "/tapes/m.jsonl"
`, "REF", ref))
		if m := c.Models[0]; m.APIKey.Reveal() != want || m.Cassette != "/tapes/m.jsonl" {
			t.Errorf("%s is read as %q, %q", ref, m.APIKey.Reveal(), m.Cassette)
		}
	}
}

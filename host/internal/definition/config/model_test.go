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

// Where a model's answers come from is said in words, and what a variable holds is not.
func TestModelAnswering(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		`api_key = "env::OPS_KEY"`:                                                                  "asks its provider, openai",
		`api_key = "env::OPS_KEY"` + "\n" + `cassette = "tapes/m.jsonl"`:                            "asks its provider, openai",
		`api_key = "env::NO_SUCH_KEY"` + "\n" + `cassette = "tapes/m.jsonl"`:                        "answers from m.jsonl, since NO_SUCH_KEY is not set",
		`api_key = "env::EMPTY"` + "\n" + `cassette = "tapes/m.jsonl"`:                              "answers from m.jsonl, since EMPTY is not set",
		`cassette = "tapes/m.jsonl"`:                                                                "answers from m.jsonl, since it has no api_key",
		`cassette = "m.jsonl"` + "\n" + `cassette_mode = "replay"` + "\napi_key = \"env::OPS_KEY\"": `answers from m.jsonl, as cassette_mode = "replay" says`,
		`cassette = "m.jsonl"` + "\n" + `cassette_mode = "record"` + "\napi_key = \"env::OPS_KEY\"": "asks its provider, openai, and records to m.jsonl",
	} {
		c := mustParse(t, readValid(t, "minimal.toml")+"\n[models.m]\nprovider = \"openai\"\nmodel = \"m\"\n"+more+"\n")
		if got := c.Models[0].Answering(); got != want {
			t.Errorf("%s\n got %s\nwant %s", more, got, want)
		}
	}
	c := mustParse(t, readValid(t, "minimal.toml")+"\n[models.m]\nprovider = \"script\"\ncassette = \"rules.toml\"\n")
	if got, want := c.Models[0].Answering(), "answers from rules.toml"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// An address whose variable is not set is the provider's own, beside a cassette alone.
func TestModelAddressBesideCassette(t *testing.T) {
	t.Parallel()
	const table = "\n[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"env::NO_SUCH_URL\"\n"
	c := mustParse(t, readValid(t, "minimal.toml")+table+"cassette = \"m.jsonl\"\n")
	if m := c.Models[0]; m.BaseURL != "" {
		t.Errorf("the address is %q", m.BaseURL)
	}
	if _, err := Parse("swarm.toml", []byte(readValid(t, "minimal.toml")+table), "testdata/valid", testOptions); err == nil || !strings.Contains(err.Error(), "NO_SUCH_URL is not set") {
		t.Errorf("without a cassette: %v", err)
	}
}

package config

import (
	"strings"
	"time"
)

// Model is one [models.NAME] table.
type Model struct {
	Name         string
	Provider     string // "openai", "anthropic" or "script"
	BaseURL      string
	Model        string
	APIKey       Secret
	MaxTokens    int64         // of one answer
	Timeout      time.Duration // of one call with its retries
	Retries      int
	InputPrice   float64 // in dollars for a million tokens, here and below
	CachedPrice  float64 // 0 takes InputPrice
	OutputPrice  float64
	Cassette     string // the path of recorded answers or, of a script, of its rules
	CassetteMode string // "auto", "replay" or "record"
	AllowPrivate bool   // base_url may lead to private addresses
	Pos          Pos
}

func (d *decoder) models(t *table) (out []Model, names []string) {
	names, subs := t.named("models")
	for i, sub := range subs {
		d.checkLocal(sub.spot, names[i], "a model")
		out = append(out, d.model(names[i], sub))
	}
	return out, names
}

func (d *decoder) model(name string, t *table) Model {
	m := Model{
		Name:         name,
		Provider:     t.oneOf("provider", "", "openai", "anthropic", "script"),
		BaseURL:      t.url("base_url"),
		Model:        t.text("model", ""),
		APIKey:       d.apiKey(t),
		MaxTokens:    t.number("max_tokens", counts, 4096, bounds{min: 1, max: 1e7}),
		Timeout:      t.duration("timeout", 2*time.Minute, within(time.Second, time.Hour)),
		Retries:      t.count("retries", 2, bounds{min: 0, max: 10}),
		InputPrice:   t.price("input_usd_per_mtok"),
		CachedPrice:  t.price("cached_usd_per_mtok"),
		OutputPrice:  t.price("output_usd_per_mtok"),
		Cassette:     t.fileName("cassette"),
		CassetteMode: t.oneOf("cassette_mode", "auto", "auto", "replay", "record"),
		AllowPrivate: t.boolean("allow_private", false),
		Pos:          d.pos(t.spot),
	}
	if !t.has("provider") {
		t.missing("provider", "")
	}
	d.modelGaps(t, m)
	t.done()
	return m
}

// modelGaps looks for what a provider cannot do without.
func (d *decoder) modelGaps(t *table, m Model) {
	switch {
	case m.Provider == "":
	case m.Provider != "script" && !t.has("model"):
		t.missing("model", "")
	case m.Provider == "script" && !t.has("cassette"):
		t.missing("cassette", "; a script's answers are in that file")
	case t.has("cassette_mode") && !t.has("cassette"):
		t.missing("cassette", "; cassette_mode says what is done with that file")
	}
}

// price reads what a million tokens cost.
func (t *table) price(key string) float64 { return t.amount(key, 1e6) }

// fileName reads the path of a file, which need not be there yet; empty for none.
func (t *table) fileName(key string) string {
	v, ok := t.value(key)
	if !ok || v.text == "" {
		return ""
	}
	return t.d.path(v.text)
}

// apiKey reads a provider's key. Beside a cassette the variable it refers to may
// be unset, so that one file serves with a key and without.
func (d *decoder) apiKey(t *table) Secret {
	raw, sp, ok := t.take("api_key")
	if !ok {
		return ""
	}
	text, isText := raw.(string)
	if !isText {
		t.wrong(sp, "a string", raw)
		return ""
	}
	if name, isEnv := strings.CutPrefix(text, "env::"); isEnv && t.has("cassette") && envName.MatchString(name) {
		if _, err := d.lookup(name); err != nil {
			return ""
		}
	}
	v, _ := d.resolve(sp, text)
	return Secret(v.text)
}

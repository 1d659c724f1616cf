package config

import (
	"fmt"
	"path/filepath"
	"slices"
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
	KeyVar       string        // the variable that APIKey is missing from, beside a cassette
	MaxTokens    int64         // of one answer
	Timeout      time.Duration // of one call with its retries
	Retries      int
	RestAfter    int           // failed calls in a row; 0 for no rest
	Rest         time.Duration // in which no call is made
	InputPrice   float64       // in dollars for a million tokens, here and below
	CachedPrice  float64       // 0 takes InputPrice
	WritePrice   float64       // of what the provider puts into its cache; 0 takes InputPrice
	OutputPrice  float64
	Reasoning    string // "low", "medium", "high", or empty
	Cache        bool
	Cassette     string // the path of recorded answers or, of a script, of its rules
	CassetteMode string // "auto", "replay" or "record"
	AllowPrivate bool   // base_url may lead to private addresses
	Pos          Pos
}

// Answering says in words where the model's answers come from.
func (m Model) Answering() string {
	file := filepath.Base(m.Cassette)
	switch {
	case m.Provider == "script":
		return "answers from " + file
	case m.CassetteMode == "replay":
		return "answers from " + file + `, as cassette_mode = "replay" says`
	case m.CassetteMode == "record":
		return "asks its provider, " + m.Provider + ", and records to " + file
	case m.Cassette == "" || m.APIKey != "":
		return "asks its provider, " + m.Provider
	case m.KeyVar != "":
		return "answers from " + file + ", since " + m.KeyVar + " is not set"
	}
	return "answers from " + file + ", since it has no api_key"
}

func (m *Model) Settings() []Setting {
	return []Setting{
		choice(&m.Provider, "provider", "", []string{"openai", "anthropic", "script"}, "Whose protocol it speaks; a script answers by the rules of its cassette.").needed(""),
		text(&m.Model, "model", "What the provider calls it."),
		readElsewhere(&m.BaseURL, "base_url", "URL", "Where the provider is."),
		readElsewhere(&m.APIKey, "api_key", "string", "The key for it."),
		count(&m.MaxTokens, "max_tokens", 4096, 1, 1e7, "Tokens of one answer."),
		span(&m.Timeout, "timeout", 2*time.Minute, time.Second, time.Hour, "One call with its retries."),
		count(&m.Retries, "retries", 2, 0, 10, "How often a call is repeated."),
		count(&m.RestAfter, "rest_after", 5, 1, 1000, "Calls in a row that the provider does not answer; after them the model rests for `rest`.").unlimited(),
		span(&m.Rest, "rest", 30*time.Second, time.Second, time.Hour, "Time in which no call is made: each is UNAVAILABLE at once and says until when. Then one call tries it."),
		amount(&m.InputPrice, "input_usd_per_mtok", 1e6, "Price of a million tokens that it reads."),
		amount(&m.CachedPrice, "cached_usd_per_mtok", 1e6, "Price of a million that the provider had in its cache; 0 takes `input_usd_per_mtok`."),
		amount(&m.WritePrice, "cache_write_usd_per_mtok", 1e6, "Price of a million that the provider puts into its cache; 0 takes `input_usd_per_mtok`."),
		amount(&m.OutputPrice, "output_usd_per_mtok", 1e6, "Price of a million tokens that it writes."),
		choice(&m.Reasoning, "reasoning", "", []string{"low", "medium", "high"}, "How long it thinks."),
		boolean(&m.Cache, "cache", false, "The provider keeps the beginnings of prompts; for anthropic."),
		field(&m.Cassette, "cassette", "path", (*table).fileName, "Recorded answers or, of a script, its rules."),
		choice(&m.CassetteMode, "cassette_mode", "auto", []string{"auto", "replay", "record"}, "`auto` answers from the cassette where there is no key."),
		boolean(&m.AllowPrivate, "allow_private", false, "`base_url` may lead to a private address."),
	}
}

func (d *decoder) models(t *table) (out []Model, names []string) {
	names, subs := t.named("models")
	for i, sub := range subs {
		d.checkLocal(sub.location, names[i], "a model")
		out = append(out, d.model(names[i], sub))
	}
	return out, names
}

func (d *decoder) model(name string, t *table) Model {
	m := Model{Name: name, Pos: d.pos(t.location)}
	t.read(m.Settings())
	if m.KeyVar = d.unsetBesideCassette(t, "api_key"); m.KeyVar == "" {
		m.APIKey = t.secret("api_key")
		d.checkKey(t, m)
	}
	if d.unsetBesideCassette(t, "base_url") == "" {
		m.BaseURL = t.url("base_url")
	}
	if m.Cassette != "" {
		d.refer(m.Cassette, true)
	}
	if strings.HasPrefix(m.BaseURL, "http://") && !m.AllowPrivate {
		d.warn(t.child("base_url"), t.child("base_url").path+" is http: whoever is on the way reads the key and all that is said; write https")
	}
	d.modelGaps(t, m)
	d.modelExcess(t, m)
	t.refuseUnknown()
	return m
}

// checkKey warns of a key that is named and empty.
func (d *decoder) checkKey(t *table, m Model) {
	raw, sp, _ := t.lookUp("api_key")
	if text, _ := raw.(string); strings.HasPrefix(text, envPrefix) && m.APIKey == "" && m.Provider != "script" {
		d.warn(sp, fmt.Sprintf("%s is empty, because the variable %s is: its calls carry no key", sp.path, strings.TrimPrefix(text, envPrefix)))
	}
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

// modelExcess looks for what a provider has no use for.
func (d *decoder) modelExcess(t *table, m Model) {
	if m.Cache && m.Provider != "" && m.Provider != "anthropic" {
		d.atKey(t.child("cache"), t.child("cache").path+" is for provider = \"anthropic\"; others keep prompts by themselves or not at all")
	}
	if m.Reasoning != "" && m.Provider == "script" {
		d.atKey(t.child("reasoning"), t.child("reasoning").path+" is for a provider that reasons; a script does not")
	}
}

// checkPrices warns of models whose calls cost no budget of dollars anything.
func (d *decoder) checkPrices(t *table, c *Config) {
	bounded := c.Limits.TaskUSD > 0 ||
		slices.ContainsFunc(c.Tenants, func(t Tenant) bool { return t.USDPerDay > 0 }) ||
		slices.ContainsFunc(c.Agents, func(a Agent) bool { return a.Limits.USD > 0 })
	if !bounded {
		return
	}
	for _, m := range c.Models {
		if m.Provider != "script" && m.InputPrice == 0 && m.OutputPrice == 0 {
			at := t.table("models").table(m.Name)
			d.warn(at.location, fmt.Sprintf("%s has no prices, so budgets of dollars do not bound its calls; add input_usd_per_mtok and output_usd_per_mtok", at.path))
		}
	}
}

// fileName reads the path of a file, which need not be there yet; empty for none.
func (t *table) fileName(key string) string {
	v, ok := t.value(key)
	if !ok || v.text == "" {
		return ""
	}
	return t.d.path(v.text)
}

// unsetBesideCassette takes a key whose variable is not set, or empty, and returns the
// variable's name; any other key it leaves. Beside a cassette that is no fault, so that
// one file serves with a provider's key and without.
func (d *decoder) unsetBesideCassette(t *table, key string) string {
	raw, _, _ := t.lookUp(key)
	text, _ := raw.(string)
	name, isEnv := strings.CutPrefix(text, envPrefix)
	if !isEnv || !t.has("cassette") || d.remote != nil || !envName.MatchString(name) {
		return ""
	}
	if v, err := d.lookup(name); err == nil && v != "" {
		return ""
	}
	return name
}

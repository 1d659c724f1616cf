package config

// Model is one [models.NAME] table.
type Model struct {
	Name     string
	Provider string // "openai", "anthropic" or "script"
	BaseURL  string
	Model    string
	APIKey   Secret
	Pos      Pos
}

func (d *decoder) models(t *table) (out []Model, names []string) {
	names, subs := t.named("models")
	for i, sub := range subs {
		d.checkLocal(sub.spot, names[i], "a model")
		out = append(out, d.model(names[i], sub))
		d.needs("models", sub.spot)
	}
	return out, names
}

func (d *decoder) model(name string, t *table) Model {
	m := Model{
		Name:     name,
		Provider: t.oneOf("provider", "", "openai", "anthropic", "script"),
		BaseURL:  t.url("base_url"),
		Model:    t.text("model", ""),
		APIKey:   Secret(t.text("api_key", "")),
		Pos:      d.pos(t.spot),
	}
	if !t.has("provider") {
		t.missing("provider", "")
	}
	if m.Provider != "" && m.Provider != "script" && !t.has("model") {
		t.missing("model", "")
	}
	t.done()
	return m
}

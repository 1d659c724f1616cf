package config

import (
	"slices"
	"strings"
	"testing"
)

const paramGrants = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:composition_test.go"
enable_entrypoint = true
can_complete_tasks = true
params = { base = "https://wiki.example.org/w", deep = { url = "http://127.0.0.1:81" }, star = "https://*", n = 7 }
allow = { http = ["GET {params.base}", "https://a.example"], http_no_key = ["{params.deep.url}"], http_private = true }
actions = ["price"]
[actions.price]
source = "file:composition_test.go"
params = { base = "https://price.example" }
allow = { http = ["{params.base}"] }
`

// A grant may be a URL of the params of its table. What is composed of the file, and
// shown of it, has the URL.
func TestGrantsFromParams(t *testing.T) {
	t.Parallel()
	c, err := Parse("swarm.toml", []byte(paramGrants), ".", Options{})
	if err != nil {
		t.Fatal(err)
	}
	agent, action := c.Agents[0].Allow, c.Actions[0].Allow
	if !slices.Equal(agent.HTTP, []string{"GET https://wiki.example.org/w", "https://a.example"}) ||
		!slices.Equal(agent.HTTPNoKey, []string{"http://127.0.0.1:81"}) || !slices.Equal(action.HTTP, []string{"https://price.example"}) {
		t.Errorf("%q %q %q", agent.HTTP, agent.HTTPNoKey, action.HTTP)
	}
	if text := string(c.Composition().JSON()); strings.Contains(text, "{params.") {
		t.Errorf("a composition refers to params: %s", text)
	}
	var shown []string
	for _, l := range Explain(c) {
		if strings.Contains(l.Key, ".allow.") {
			shown = append(shown, l.Key+" "+l.Value)
		}
	}
	want := []string{
		`agents.boss.allow.http "GET {params.base}" is GET https://wiki.example.org/w`,
		`agents.boss.allow.http_no_key "{params.deep.url}" is http://127.0.0.1:81`,
		`actions.price.allow.http "{params.base}" is https://price.example`,
	}
	if !slices.Equal(shown, want) {
		t.Errorf("explained as %q", shown)
	}
}

// A reference to what is no URL of one host is a fault at the grant.
func TestGrantsFromParamsRefused(t *testing.T) {
	t.Parallel()
	for reference, want := range map[string]string{
		"{params.bse}":   `10:19: the grant "{params.bse}": agents.boss.params.bse is missing`,
		"{params.n}":     `agents.boss.params.n is no URL as in "https://api.example.com"`,
		"{params.star}":  `agents.boss.params.star is no URL`,
		"{params.deep}":  `agents.boss.params.deep is no URL`,
		"{params.n.x}":   `agents.boss.params.n.x is missing`,
		"{params.}":      `agents.boss.params. is missing`,
		"GET {params.x}": `agents.boss.params.x is missing`,
	} {
		text := strings.Replace(paramGrants, "GET {params.base}", reference, 1)
		if _, err := Parse("swarm.toml", []byte(text), ".", Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", reference, err, want)
		}
	}
}

// What a definition over the network refers to is in its own params; what the store has
// is not read again.
func TestGrantsFromParamsOverTheNetwork(t *testing.T) {
	t.Parallel()
	c, err := Parse("swarm.toml", []byte(paramGrants), ".", Options{})
	if err != nil {
		t.Fatal(err)
	}
	own := string(c.Composition().JSON())
	text := strings.NewReplacer(`"GET https://wiki.example.org/w"`, `"{params.base}"`, "https://wiki.example.org/w", "https://evil.example").Replace(own)
	x, err := c.ParseComposition([]byte(text))
	if err != nil || x.Agents[0].Allow.HTTP[0] != "https://evil.example" {
		t.Errorf("%+v, %v", x.Agents, err)
	}
	stored := strings.Replace(own, `"GET https://wiki.example.org/w"`, `"{params.base}"`, 1)
	if x, err = c.RecallComposition([]byte(stored)); err != nil || x.Agents[0].Allow.HTTP[0] != "{params.base}" {
		t.Errorf("%+v, %v", x.Agents, err)
	}
}

package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/definition/config"
)

// TestMask: what others may read of a configuration has its parts with what they grant, and none of the
// planted texts, which stand where files have secrets, prompts and other texts.
func TestMask(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		"the secret", "planted-1",
		`entrypoint = "boss"`, "entrypoint = \"boss\"\ndescription = \"planted-2\"\nkeywords = [\"planted-3\"]",
		"comm_targets = [\"math\"]", "comm_targets = [\"math\"]\nparams = { system = \"planted-4\" }",
		"https://a.example\"], secrets", "https://a.example/planted-5?key=planted-6\"], secrets",
		"[tenants.acme]", `[peers.depot]
base_url = "https://d.example/planted-7"
auth_token = "planted-8"
metadata = { note = "planted-9" }
[mcp.web]
url = "https://a.example/mcp/planted-10"
auth_token = "planted-11"
[mcp.notes]
command = ["PROGRAM", "--key=planted-12"]
trusted = true
env = { KEY = "planted-13" }
[models.small]
provider = "openai"
base_url = "https://m.example/planted-14"
model = "m"
api_key = "planted-15"
[actions.ask]
source = "human"
description = "planted-16"
[actions.ask.parameters]
title = "planted-17"
[[auth.keys]]
id = "op"
role = "operator"
key = "planted-18-and-more"
[telemetry]
endpoint = "http://127.0.0.1:4318/planted-19"
header_value = "planted-20"
[tenants.acme]`).Replace(before)
	text = strings.Replace(text, "PROGRAM", filepath.ToSlash(program), 1)
	c, err := config.Parse("swarm.toml", []byte(text), ".", config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	parts := Mask(c)
	shown, err := json.Marshal(parts)
	if err != nil || strings.Contains(string(shown), "planted") || strings.Count(text, "planted-") != 20 {
		t.Errorf("%v\n%s", err, shown)
	}
	for _, want := range []Masked{
		{"grant", "boss.http", []any{"https://a.example"}}, {"grant", "boss.kv", "agent"}, {"swarm", "entrypoint", "boss"},
	} {
		if !slices.ContainsFunc(parts, func(got Masked) bool {
			one, _ := json.Marshal(got)
			other, _ := json.Marshal(want)
			return string(one) == string(other)
		}) {
			t.Errorf("%v is missing in %s", want, shown)
		}
	}
	for _, want := range []string{`"base_url":"https://d.example"`, `"auth_token":"[secret]"`, `"source":"file:change.go"`} {
		if !strings.Contains(string(shown), want) {
			t.Errorf("%s is missing in %s", want, shown)
		}
	}
	if got := Secrets(c); !slices.Equal(got, []string{"planted-1", "planted-11", "planted-13", "planted-15", "planted-20", "planted-8"}) {
		t.Errorf("the secrets are %v", got)
	}
}

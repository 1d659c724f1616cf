package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
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
url = "HTTPS://a.example/mcp/planted-10"
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
[questions]
webhook = "https://w.example/planted-23"
secret = "env::PLANTED"
[gateways.acp.partners.store]
url = "https://p.example/planted-21"
tenant = "acme"
header = { x_token = "planted-22" }
[tenants.acme]`).Replace(before)
	text = strings.Replace(text, "PROGRAM", filepath.ToSlash(program), 1)
	c, err := config.Parse("swarm.toml", []byte(text), ".", config.Options{Env: func(string) (string, bool) { return "whsec_planted/planted/planted/planted/planted=", true }})
	if err != nil {
		t.Fatal(err)
	}
	parts := Mask(c)
	shown, err := json.Marshal(parts)
	if err != nil || strings.Contains(string(shown), "planted") || strings.Count(text, "planted-") != 23 {
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
	if got := Secrets(c); !slices.Equal(got, []string{"planted-1", "planted-11", "planted-13", "planted-15", "planted-20", "planted-22", "planted-8", "whsec_planted/planted/planted/planted/planted="}) {
		t.Errorf("the secrets are %v", got)
	}
}

// shownKeys are settings whose texts others may read: names, choices, addresses and paths of files.
var shownKeys = strings.Fields(`
	actions admin_listen admit advertise agents algorithms audience base_url binding breakpoint_tools broker brokers
	ca ca_file card cassette cassette_mode cert certificate certificates client_ca client_cert client_id client_key
	comm_targets cors_origins did driver dsl durability effect endpoint entrypoint exchange exclude_tools expose hosts http
	http_no_key id ids interrupt_mode issuer keys_url kv listen llm log_format log_level login look may mechanism
	model name partners peer pins prefix process_cgroup profile provider public_url readable reasoning role role_claim
	roles root scope secrets sha256 source stranger_tenant tenant tenant_claim token token_info token_url topics
	trusted_proxies url username verify_key version webhook`)

// fileKeys are settings "key" that name a file of a private key. In [[auth.keys]] it is withheld.
var fileKeys = []string{"[server].tls", "[gateways.acp].mqtt", "[gateways.amp].rabbitmq", "[gateways.amp].kafka", "[gateways.NAME.partners.NAME]"}

// TestMaskHasEachSetting: a new setting that holds a text is shown only once it is said here that others may read it.
func TestMaskHasEachSetting(t *testing.T) {
	t.Parallel()
	texts := 0
	var walk func(table string, settings []config.Setting)
	walk = func(table string, settings []config.Setting) {
		for _, s := range settings {
			if s.Nested != nil {
				walk(table+"."+s.Key, s.Nested)
				continue
			}
			_, secret := s.Value().(config.Secret)
			switch kind := reflect.TypeOf(s.Value()).Kind(); {
			case secret, kind != reflect.String && kind != reflect.Slice && kind != reflect.Map:
			case s.Key == "key" && slices.Contains(fileKeys, table):
			case slices.Contains(shownKeys, s.Key) == slices.Contains(withheldKeys, s.Key):
				t.Errorf("%s %s: is it to be shown in a support bundle? Name it in shownKeys or in withheldKeys, in one", table, s.Key)
			default:
				texts++
			}
		}
	}
	for _, s := range config.Sections() {
		walk(s.Name, s.Settings)
	}
	if texts < 100 {
		t.Errorf("%d texts are settings", texts)
	}
}

// TestMaskForms: of forms that a configuration does not have today nothing is shown.
func TestMaskForms(t *testing.T) {
	t.Parallel()
	text := "planted"
	for _, v := range []any{&text, []string{text}, map[string]string{"a": text}, []byte(text), struct{ A string }{text}} {
		if got := mask("note", v); got != withheld {
			t.Errorf("%T is shown as %v", v, got)
		}
	}
	for _, v := range []any{true, int64(3), uint(3), 0.5, "word"} {
		if got := mask("note", v); got != v {
			t.Errorf("%v is shown as %v", v, got)
		}
	}
}

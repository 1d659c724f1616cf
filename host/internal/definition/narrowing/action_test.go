package narrowing

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"skep/host/internal/definition/config"
)

const withAction = grants + `[actions.price]
source = "file:file_test.go"
timeout = "1m"
actions = ["ask"]
allow = { kv = "task" }
limits = { fuel = 1000 }
[actions.ask]
source = "human"
description = "d"
parameters = {}
`

func actionFile(t *testing.T) File {
	f := testFile(t, strings.Replace(withAction, "exclude_tools", "actions = [\"price\"]\nexclude_tools", 1))
	f.Modules[actionModule+"price"] = strings.Repeat("cd", 32)
	return f
}

// An action with code is the file's, with no more than the file grants it.
func TestJudgeActions(t *testing.T) {
	t.Parallel()
	f := actionFile(t)
	if got := f.Own().Actions[0].SHA256; got != f.Modules[actionModule+"price"] {
		t.Errorf("the own action has the digest %q", got)
	}
	for action, want := range map[string]string{
		`"source":"file:file_test.go","timeout":"1m"`:                                      "",
		`"sha256":"` + strings.Repeat("cd", 32) + `","timeout":"30s","limits":{"fuel":10}`: "",
		`"sha256":"` + digest + `","timeout":"1m"`:                                         "its code is not that of the operator's file",
		`"source":"file:file_test.go","timeout":"2m"`:                                      "the operator's file allows 1m0s",
		`"source":"file:file_test.go","timeout":"1m","limits":{"fuel":2000}`:               "actions.price.limits.fuel: more than the 1000 of actions.price",
		`"source":"file:file_test.go","timeout":"1m","allow":{"kv":"instance"}`:            "actions.price.allow.kv",
		`"source":"file:file_test.go","timeout":"1m","actions":["price"]`:                  `actions.price.actions: the operator's file does not grant "price"`,
	} {
		text := strings.TrimSuffix(string(single(`"source":"file:file_test.go","actions":["price"]`)), "}") + `,"actions":{"price":{` + action + `}}}`
		x, err := f.Admit([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", action, err, want)
		}
		if err == nil && (x.Actions[0].SHA256 != f.Modules[actionModule+"price"] || x.Actions[0].Source.Kind != config.SourceFile ||
			x.Actions[0].Limits.Fuel > 1000 || x.Actions[0].Limits.Turn != x.Actions[0].Timeout) {
			t.Errorf("%s: %+v", action, x.Actions[0])
		}
	}
}

// What the arguments of an action with code must be stays what the file says: a
// definition that says less would reach more with it.
func TestParametersAreTheFiles(t *testing.T) {
	t.Parallel()
	narrow := strings.Replace(withAction, "timeout = \"1m\"", "timeout = \"1m\"\nparameters = { type = \"object\", required = [\"n\"] }", 1)
	f := testFile(t, strings.Replace(narrow, "exclude_tools", "actions = [\"price\"]\nexclude_tools", 1))
	f.Modules[actionModule+"price"] = strings.Repeat("cd", 32)
	for parameters, want := range map[string]string{
		"": "", `,"parameters":{}`: "", `,"parameters":{"required":["n"],"type":"object"}`: "",
		`,"parameters":{"type":"object"}`: "actions.price.parameters: what its arguments must be",
	} {
		text := strings.TrimSuffix(string(single(`"source":"file:file_test.go","actions":["price"]`)), "}") + `,"actions":{"price":{"source":"file:file_test.go","timeout":"1m"` + parameters + `}}}`
		x, err := f.Admit([]byte(text))
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", parameters, err, want)
		case want == "" && (err != nil || string(x.Actions[0].Parameters) != string(f.Config.Actions[0].Parameters)):
			t.Errorf("%s: %v, %s", parameters, err, x.Actions[0].Parameters)
		}
	}
}

// Whom an action at partners reaches is the file's: a definition over the network has
// the same partners, and an older one has those of today.
func TestPartnersAreTheFiles(t *testing.T) {
	t.Parallel()
	const more = `[actions.order]
source = "gateway:a2a/send"
partners = ["shop"]
[gateways.a2a.partners.shop]
url = "https://shop.example"
[gateways.a2a.partners.lab]
url = "https://lab.example"
`
	f := testFile(t, strings.Replace(grants, "exclude_tools", "actions = [\"order\"]\nexclude_tools", 1)+more)
	admit := func(action string) (config.Composition, error) {
		return f.Admit([]byte(strings.TrimSuffix(string(single(`"source":"file:file_test.go","actions":["order"]`)), "}") + `,"actions":{"order":{` + action + `}}}`))
	}
	x, err := admit(`"source":"gateway:a2a/send","timeout":"1m"`)
	if err != nil || len(x.Actions[0].Partners) != 1 || x.Actions[0].Partners[0] != "shop" {
		t.Errorf("%+v, %v", x.Actions, err)
	}
	for _, action := range []string{`"source":"gateway:a2a/send","timeout":"1m","partners":["lab"]`, `"source":"gateway:a2a/tell","timeout":"1m"`} {
		if _, err := admit(action); err == nil {
			t.Errorf("%s is admitted", action)
		}
	}
	old := f.Own()
	old.Actions[0].Partners = []string{"shop", "lab"}
	if got := f.Narrow(old, true).Actions[0].Partners; len(got) != 1 || got[0] != "shop" {
		t.Errorf("an older definition reaches %q", got)
	}
}

// Older compositions keep of their actions what today's file grants.
// What an action's code is given is the file's: it may be a program, or a module whose
// params say where its grants are used.
func TestParamsOfActionsAreTheFiles(t *testing.T) {
	t.Parallel()
	const params = `params = { dir = "/srv", keep = [1] }`
	file := func(params string) File {
		f := testFile(t, strings.NewReplacer("exclude_tools", "actions = [\"price\"]\nexclude_tools", "timeout = \"1m\"", "timeout = \"1m\"\n"+params).Replace(withAction))
		f.Modules[actionModule+"price"] = strings.Repeat("cd", 32)
		return f
	}
	f := file(params)
	var loaded config.Composition
	for params, want := range map[string]string{
		"": "", `,"params":{}`: "", `,"params":{"keep":[1],"dir":"/srv"}`: "",
		`,"params":{"dir":"/etc"}`: "actions.price.params: what its code is given",
	} {
		text := strings.TrimSuffix(string(single(`"source":"file:file_test.go","actions":["price"]`)), "}") + `,"actions":{"price":{"source":"file:file_test.go","timeout":"1m"` + params + `}}}`
		x, err := f.Admit([]byte(text))
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", params, err, want)
			}
		case err != nil || string(x.Actions[0].Params) != string(f.Config.Actions[0].Params):
			t.Errorf("%s: %v, %s", params, err, x.Actions[0].Params)
		default:
			loaded = x
		}
	}

	// A composition in the store may be older than this rule.
	loaded.Actions[0].Params = json.RawMessage(`{"dir":"/etc"}`)
	if got := f.Narrow(loaded, false).Actions[0].Params; string(got) != string(f.Config.Actions[0].Params) {
		t.Errorf("a stored composition keeps %s", got)
	}
	if got := testFile(t, grants).Narrow(loaded, false).Actions[0].Params; got != nil {
		t.Errorf("an action that the file has no more keeps %s", got)
	}
	if got := file("").Narrow(f.Own(), true).Actions[0].Params; string(got) != string(f.Config.Actions[0].Params) {
		t.Errorf("a task of the operator's composition goes on with %s", got)
	}
}

func TestNarrowActions(t *testing.T) {
	t.Parallel()
	f := actionFile(t)
	x := f.Own()
	less := testFile(t, strings.NewReplacer(`timeout = "1m"`, `timeout = "1s"`, `allow = { kv = "task" }`+"\nlimits = { fuel = 1000 }", "limits = { fuel = 10 }").Replace(withAction))
	got := less.Narrow(x, true).Actions[0]
	if got.Timeout != time.Second || got.Limits.Fuel != 10 || got.Allow.KV != "" {
		t.Errorf("%+v", got)
	}
	if got := testFile(t, grants).Narrow(x, true).Actions[0]; got.Allow.KV != "" || got.Actions != nil {
		t.Errorf("an action that is gone keeps %+v", got)
	}
	if x.Actions[0].Allow.KV != "task" {
		t.Error("the composition itself was changed")
	}
}

const withFiles = grants + `[actions.read_file]
source = "builtin:fs"
root = "%s"
`

// Files are the file's to give: a definition has them as they stand there, and an
// older one as they stand there today.
func TestFiles(t *testing.T) {
	t.Parallel()
	one, other := t.TempDir(), t.TempDir()
	with := func(root string) File {
		return testFile(t, strings.Replace(fmt.Sprintf(withFiles, root), "exclude_tools", "actions = [\"read_file\"]\nexclude_tools", 1))
	}
	f := with(one)
	text := strings.TrimSuffix(string(single(`"source":"file:file_test.go","actions":["read_file"]`)), "}") + `,"actions":{"read_file":{"source":"builtin:fs"}}}`
	x, err := f.Admit([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := x.Actions[0]; got.Files != f.Config.Actions[0].Files || got.Files.Root == "" || got.SHA256 != "" {
		t.Errorf("%+v", got)
	}
	today := with(other)
	if got := today.Narrow(x, true).Actions[0].Files; got != today.Config.Actions[0].Files {
		t.Errorf("%+v", got)
	}
	code := testFile(t, strings.Replace(fmt.Sprintf(withFiles, one), "source = \"builtin:fs\"\nroot = \""+one+"\"", "source = \"file:file_test.go\"", 1))
	for what, file := range map[string]File{"gone": testFile(t, grants), "a module by now": code} {
		if got := file.Narrow(x, true).Actions[0].Files; got != (config.Files{}) {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if x.Actions[0].Files.Root == "" {
		t.Error("the composition itself was changed")
	}
}

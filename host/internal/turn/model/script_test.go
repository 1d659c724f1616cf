package model_test

import (
	"os"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn/model"
)

const rules = `
[[rule]]
system = 'brief'
last = [{ role = "user", match = '(?i)weather' }]
calls = [{ name = "get_weather" }]

[[rule]]
last = [{ role = "assistant" }, { role = "tool", is = "rain" }]
times = 1
text = "Take a coat."

[[rule]]
last = [{ match = '^fail' }]
error = "overloaded"
text = "the model is down"
`

func asked(messages ...abi.ChatMessage) abi.ChatRequest {
	return abi.ChatRequest{Model: "default", Messages: messages}
}

func TestScriptRules(t *testing.T) {
	m := script(t, rules)
	weather := asked(abi.ChatMessage{Role: abi.RoleSystem, Content: "Be brief."}, abi.ChatMessage{Role: abi.RoleUser, Content: "The Weather?"})
	resp, _, err := ask(t, m, weather, true)
	if err != nil || len(resp.ToolCalls) != 1 || resp.ToolCalls[0] != (abi.ChatCall{ID: "call_2_0", Name: "get_weather", Arguments: "{}"}) || resp.Finish != abi.FinishToolCalls {
		t.Errorf("got %+v, %v", resp, err)
	}
	if resp.Usage.InputTokens != 6 || resp.Usage.OutputTokens != 4 || resp.Usage.MicroUSD != 14 {
		t.Errorf("used %+v", resp.Usage)
	}
	rain := asked(abi.ChatMessage{Role: abi.RoleAssistant}, abi.ChatMessage{Role: abi.RoleTool, Content: "rain"})
	if resp, n, err := ask(t, m, rain, true); err != nil || resp.Text != "Take a coat." || n != 3 {
		t.Errorf("got %q in %d pieces, %v", resp.Text, n, err)
	}
	_, _, err = ask(t, m, rain, true)
	failed(t, err, model.Unexpected, `nearest is rule 2, which was used 1 times, as often as it may be (times)`)
	_, _, err = ask(t, m, asked(abi.ChatMessage{Role: abi.RoleUser, Content: "fail now"}), true)
	failed(t, err, model.Overloaded, "the model is down")
}

func TestScriptUnexpected(t *testing.T) {
	m := script(t, rules)
	for text, req := range map[string]abi.ChatRequest{
		`no answer to the assistant's message ""; the nearest is rule 1, which wants the system's messages to match "brief"`: asked(abi.ChatMessage{Role: abi.RoleAssistant}),
		`the tool's message "rainy"; the nearest is rule 2, which wants message 2 of the last 2 to be "rain"`:                asked(abi.ChatMessage{Role: abi.RoleAssistant}, abi.ChatMessage{Role: abi.RoleTool, Content: "rainy"}),
		`the nearest is rule 1, which wants the system's messages to match "brief"`:                                          asked(abi.ChatMessage{Role: abi.RoleUser, Content: "weather"}),
		`the nearest is rule 1, which wants message 1 of the last 1 to be the user's`:                                        asked(abi.ChatMessage{Role: abi.RoleSystem, Content: "brief"}),
	} {
		_, _, err := ask(t, m, req, true)
		failed(t, err, model.Unexpected, text)
	}
	_, _, err := ask(t, script(t, "[[rule]]\nlast = [{ match = 'x' }]"), asked(), false)
	failed(t, err, model.Unexpected, "no answer to a request without messages; the nearest is rule 1, which wants at least 1 messages")
	_, _, err = ask(t, script(t, "[[rule]]\nlast = [{ match = 'x' }]"), asked(abi.ChatMessage{Role: abi.RoleUser, Content: "y"}), false)
	failed(t, err, model.Unexpected, `wants message 1 of the last 1 to match "x"`)
}

func TestScriptFile(t *testing.T) {
	for text, file := range map[string]string{
		"no [[rule]]":            "",
		"rules.toml:1: expected": "[[rule",
		`rules.toml:2: the key rule.txet is unknown (did you mean "text"?)`:                         "[[rule]]\ntxet = \"\"",
		`rules.toml:4: the key rule.last.mtch is unknown (did you mean "match"?)`:                   "[[rule]]\ntext = 'mtch'\n[[rule]]\nlast = [{ role = 'user', mtch = 'x' }]",
		`rules.toml:2: the key rule.usage.tokens is unknown; there are input_tokens, cached_tokens`: "[[rule]]\nusage = { tokens = 1 }",
		`rules.toml:3: the key rle is unknown (did you mean "rule"?)`:                               "[[rule]]\n\n[[rle]]",
		"rules.toml:2: rule 1: system: error parsing":                                               "\n[[rule]]\nsystem = '('",
		"rules.toml:3: rule 2: last: match: error":                                                  "[[rule]]\n\n[[rule]]\nlast = [{ match = '(' }]",
		"rules.toml: rule 1: times must not":                                                        "rule = [{ times = -1 }]",
		`rules.toml:2: (last key "rule.times"): incompatible types`:                                 "[[rule]]\ntimes = 'x'",
		"the role \"boss\" is unknown; there are system, user, assistant, tool":                     "[[rule]]\nlast = [{ role = 'boss' }]",
		"both is and match":              "[[rule]]\nlast = [{ is = 'a', match = 'b' }]",
		`the role "boss" is unknown`:     "[[rule]]\nlast = [{ role = 'boss' }]",
		"a call has no name":             "[[rule]]\ncalls = [{}]",
		"times must not be negative":     "[[rule]]\ntimes = -1",
		`finish: "done" is unknown`:      "[[rule]]\nfinish = 'done'",
		`error: "unexpected" is unknown`: "[[rule]]\nerror = 'unexpected'",
	} {
		path := temp(t, "rules.toml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := model.Open(model.Spec{Name: "default", Provider: model.Script, Cassette: path}, model.Options{})
		if err == nil || !strings.Contains(err.Error(), text) || !strings.HasPrefix(err.Error(), "models.default: cassette: ") {
			t.Errorf("got %v, want %q", err, text)
		}
	}
}

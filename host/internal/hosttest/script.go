package hosttest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// AnswerTo is the one answer of a path.
func AnswerTo(path string) string { return "re:" + path }

type (
	// Step is one call of a script: its name and its arguments.
	Step = [2]any
	// Args are the arguments of a [Step].
	Args = map[string]any
)

// Script is a body that the script agent runs. The place of an answer is written
// so that only the script it stands in fills it, not one that hands it on.
func Script(steps ...Step) string {
	raw, err := json.Marshal(steps)
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(raw), "{{", `{\u007b`)
}

// RequestOf is a script that asks an agent and waits for its answer.
func RequestOf(target, body string) string {
	return fmt.Sprintf(`[["send_request",{"target":%q,"subject":"s","body":%q}],["await_message",{}]]`, target, body)
}

// ChatStep is a call that asks a model.
func ChatStep(name string) Step {
	return Step{"llm.chat", Args{"model": name, "messages": []any{map[string]any{"role": "user", "content": "What is my key?"}}}}
}

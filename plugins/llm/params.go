package main

import (
	"bytes"
	"encoding/json"
	"strings"

	skep "skep/sdk/go"
)

// params are what the operator's file says of the agent.
type params struct {
	System string `json:"system"`
	// Model asks, and SummaryModel sums up what is old; absent it is Model, and
	// empty leaves out what is old.
	Model        string  `json:"model"`
	SummaryModel *string `json:"summary_model"`
	Tools        choice  `json:"tools"`
	// Ops are the host's operations that the model may call as tools.
	Ops []string `json:"ops"`
	// MaxRounds bounds the questions of a turn, Corrections the ones among
	// them that only repeat that a tool must be called.
	MaxRounds        int   `json:"max_rounds"`
	Corrections      int   `json:"corrections"`
	MaxHistoryTokens int   `json:"max_history_tokens"`
	MaxTokens        int64 `json:"max_tokens"`

	Temperature   *float64 `json:"temperature"`
	RequireTool   bool     `json:"require_tool"`
	EmitReasoning bool     `json:"emit_reasoning"`
	// Times shows the model when each message was sent.
	Times bool `json:"times"`
}

// choice picks among the tools that the agent is given.
type choice struct {
	Include []string `json:"include"`
	Exclude []string `json:"exclude"`
}

const paramsSchema = `{"type":"object","additionalProperties":false,"properties":{` +
	`"system":{"type":"string","description":"What the agent is and does."},` +
	`"model":{"type":"string","minLength":1,"default":"default","x-skep":"model","description":"A name of [models] that allow.llm grants."},` +
	`"summary_model":{"type":"string","x-skep":"model","description":"The model that sums up what is old; as model by default, \"\" leaves out what is old."},` +
	`"tools":{"type":"object","additionalProperties":false,"properties":{` +
	`"include":{"type":"array","items":{"type":"string","x-skep":"tool"},"description":"Only these of the tools the agent is given."},` +
	`"exclude":{"type":"array","items":{"type":"string","x-skep":"tool"},"description":"All but these."}}},` +
	`"ops":{"type":"array","items":{"enum":["kv_get","kv_put","kv_delete","kv_list","http_fetch","timer_set","timer_cancel"],"x-skep":"op"},` +
	`"description":"Operations of the host that the model may call as tools."},` +
	`"max_rounds":{"type":"integer","minimum":1,"maximum":100,"default":12,"description":"Questions to the model in one turn."},` +
	`"corrections":{"type":"integer","minimum":0,"maximum":5,"default":2,"description":"How often a model that calls nothing is asked again before its text is the answer."},` +
	`"max_history_tokens":{"type":"integer","minimum":1000,"default":32000,"description":"What is older than that many tokens is summed up."},` +
	`"max_tokens":{"type":"integer","minimum":1,"description":"Bound of one answer; the model's own by default."},` +
	`"temperature":{"type":"number","minimum":0,"maximum":2},` +
	`"require_tool":{"type":"boolean","default":false,"description":"Has the model call a tool each time, and never takes its text for the answer."},` +
	`"emit_reasoning":{"type":"boolean","default":false,"description":"Shows the model's reasoning to whoever follows the task."},` +
	`"times":{"type":"boolean","default":false,"description":"Shows the model when each message was sent."}}}`

// readParams reads the agent's params. What is wrong with them is the operator's to
// mend, so the error names the key.
func readParams(t *skep.Turn) (*params, error) {
	p := &params{Model: "default", MaxRounds: 12, Corrections: 2, MaxHistoryTokens: 32_000}
	var raw json.RawMessage
	if err := t.Params(&raw); err != nil {
		return nil, err
	}
	wrong := func(format string, args ...any) error {
		return skep.Errorf(skep.Invalid, "[agents."+t.Agent.Name+"] params"+format, args...)
	}
	if len(raw) > 0 {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(p); err != nil {
			return nil, wrong(": %s", strings.TrimPrefix(err.Error(), "json: "))
		}
	}
	switch {
	case p.Model == "":
		return nil, wrong(".model must not be empty; it is a name of [models]")
	case p.MaxRounds < 1 || p.MaxRounds > 100:
		return nil, wrong(".max_rounds must be from 1 to 100, not %d", p.MaxRounds)
	case p.Corrections < 0 || p.Corrections > 5:
		return nil, wrong(".corrections must be from 0 to 5, not %d", p.Corrections)
	case p.MaxHistoryTokens < 1000:
		return nil, wrong(".max_history_tokens must be 1000 or more, not %d", p.MaxHistoryTokens)
	case p.MaxTokens < 0:
		return nil, wrong(".max_tokens must be 1 or more, not %d", p.MaxTokens)
	case p.Temperature != nil && (*p.Temperature < 0 || *p.Temperature > 2):
		return nil, wrong(".temperature must be from 0 to 2, not %v", *p.Temperature)
	}
	return p, nil
}

package main

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	skep "skep/sdk/go"
)

func TestParams(t *testing.T) {
	t.Parallel()
	tests := []struct {
		params any
		want   string
	}{
		{map[string]any{"modle": "x"}, `unknown field "modle"`},
		{map[string]any{"model": ""}, "params.model must not be empty"},
		{map[string]any{"max_rounds": 0}, "max_rounds must be from 1 to 100"},
		{map[string]any{"max_rounds": "3"}, "max_rounds"},
		{map[string]any{"corrections": 9}, "corrections must be from 0 to 5"},
		{map[string]any{"max_history_tokens": 10}, "max_history_tokens must be 1000 or more"},
		{map[string]any{"max_tokens": -1}, "max_tokens must be 1 or more"},
		{map[string]any{"temperature": 3}, "temperature must be from 0 to 2"},
		{map[string]any{"ops": []string{"rm"}}, `there is no "rm"; there are http_fetch, kv_delete`},
		{map[string]any{"ops": []string{"kv_get", "kv_get"}}, `has a tool "kv_get" already`},
		{map[string]any{"tools": map[string]any{"exclude": []string{"hlep"}}}, `has no tool "hlep"; it has send_request`},
		{map[string]any{"tools": map[string]any{"include": []string{"x"}}}, "params.tools.include"},
	}
	for _, tt := range tests {
		in := boss("hi")
		in.Params = tt.params
		out, _ := play(t, in)
		if !errors.Is(out.Err, skep.Invalid) || !strings.Contains(out.Err.Message, tt.want) || !strings.Contains(out.Err.Message, "[agents.boss]") {
			t.Errorf("%v: %v, want %q", tt.params, out.Err, tt.want)
		}
	}
	in := boss("hi")
	in.Params = map[string]any{
		"model": "fast", "max_tokens": 100, "temperature": 0.5, "ops": []string{"kv_get"},
		"tools": map[string]any{"include": []string{"task_complete", "help", "kv_get"}, "exclude": []string{"help", "discover_swarms"}},
	}
	_, asked := play(t, in, finish("x"))
	r := asked[0]
	if r.Model != "fast" || r.MaxTokens != 100 || *r.Temperature != 0.5 || len(r.Tools) != 2 || r.Tools[0].Name != "task_complete" || r.Tools[1].Name != "kv_get" {
		t.Errorf("asked %+v", r)
	}
}

// TestParamsSchema holds the schema that operators see against what is read.
func TestParamsSchema(t *testing.T) {
	t.Parallel()
	var s struct {
		Properties map[string]struct {
			Items struct{ Enum []string }
		}
	}
	if err := json.Unmarshal([]byte(paramsSchema), &s); err != nil {
		t.Fatal(err)
	}
	fields := reflect.TypeFor[params]()
	for i := range fields.NumField() {
		name := fields.Field(i).Tag.Get("json")
		if _, ok := s.Properties[name]; !ok {
			t.Errorf("the schema has no %s", name)
		}
	}
	if len(s.Properties) != fields.NumField() {
		t.Errorf("%d properties, %d fields", len(s.Properties), fields.NumField())
	}
	got := s.Properties["ops"].Items.Enum
	slices.Sort(got)
	if !slices.Equal(got, opNames()) {
		t.Errorf("the schema has the ops %q, the agent %q", got, opNames())
	}
}

func TestWarm(t *testing.T) {
	t.Parallel()
	if err := (Thinker{}).Warm(); err != nil {
		t.Error(err)
	}
}

package abi

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said is a descriptor with more members.
func said(more string) string { return `{"abi":1,"name":"a","version":"1",` + more + `}` }

func TestParseDescriptor(t *testing.T) {
	t.Parallel()
	got, err := ParseDescriptor([]byte(`{"abi":1,"name":"a.b-c_9","version":"1.0 (beta)","description":"two\nlines","future":{"ABI":[]},
		"agents":[{"name":"] x","description":null,"params":{"Name":1,"name":2},"roles":["r"],"capacity":4,
			"capabilities":[{"id":"c","version":"2","description":"d","input_schema":{},"output_schema":true,"constraints":{"max_input_length":9}}]}],
		"actions":[{"name":"a_b","description":"d","parameters":{"type":"object"},"timeout":"5s","idempotent":true}],
		"requests":[{"allow":"http","value":["https://x"],"reason":"why","optional":true},{"allow":"kv","reason":"why"}]}`))
	want := &Descriptor{
		ABI: 1, Name: "a.b-c_9", Version: "1.0 (beta)", Description: "two\nlines",
		Agents: []AgentDescriptor{{
			Name: "] x", Params: json.RawMessage(`{"Name":1,"name":2}`), Roles: []string{"r"}, Capacity: 4,
			Capabilities: []Capability{{
				ID: "c", Version: "2", Description: "d", InputSchema: json.RawMessage(`{}`), OutputSchema: json.RawMessage(`true`), Constraints: json.RawMessage(`{"max_input_length":9}`),
			}},
		}},
		Actions: []ActionDescriptor{{
			Name: "a_b", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`), Timeout: "5s", Idempotent: true,
		}},
		Requests: []Request{
			{Allow: "http", Value: json.RawMessage(`["https://x"]`), Reason: "why", Optional: true}, {Allow: "kv", Reason: "why"},
		},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseDescriptorRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ raw, want string }{
		"no json":          {`x`, "not JSON: invalid character"},
		"nothing":          {``, "not JSON: unexpected end of JSON input"},
		"no object":        {`[]`, "must be an object, not a list"},
		"two values":       {`{"abi":1,"name":"a","version":"1"}{}`, "not JSON: invalid character '{' after top-level value"},
		"broken text":      {"{\"abi\":1,\"name\":\"\xff\",\"version\":\"1\"}", "not UTF-8"},
		"too large":        {`{"name":"` + strings.Repeat("a", MaxDescriptor) + `"}`, "at most 262144"},
		"too deep":         {said(`"future":` + strings.Repeat("[", 64) + strings.Repeat("]", 64)), "deeper than 64 levels"},
		"newer":            {`{"abi":2,"name":"a","version":1}`, "the descriptor speaks ABI version 2, this host version 1: upgrade skep, or rebuild the module with an SDK for ABI 1"},
		"older":            {`{"name":"a","version":"1"}`, "the descriptor speaks ABI version 0, this host version 1: rebuild the module with"},
		"another case":     {`{"ABI":1,"name":"x","version":"1"}`, "descriptor: ABI must be written abi"},
		"another case in":  {said(`"agents":[{"name":"a"},{"Name":"x"}]`), "agents[1].Name must be written name"},
		"twice":            {said(`"name":"b"`), "descriptor: name is there twice"},
		"twice, escaped":   {said(`"agents":[{"name":"a","n\u0061me":"b"}]`), "agents[0].name is there twice"},
		"twice in a value": {said(`"agents":[{"name":"a","params":{"x":[1,{"y":1,"y":2}]}}]`), "agents[0].params.x[1].y is there twice"},
		"forging member":   {said(`"a\nb":1,"a\nb":2`), `"a\nb" is there twice`},
		"forging within":   {said(`"x":{"\u2028":1,"\u2028":2}`), `x."\u2028" is there twice`},
		"twice in unknown": {said(`"future":{"x":1e999999999,"x":2}`), "future.x is there twice"},

		"abi a text":      {`{"abi":"1","name":"a","version":"1"}`, "abi must be a whole number, not a text"},
		"abi a fraction":  {`{"abi":1.5,"name":"a","version":"1"}`, "abi must be a whole number, not the number 1.5"},
		"abi far too big": {`{"abi":` + strings.Repeat("9", 30) + `,"name":"a","version":"1"}`, "abi must be a whole number, not a number"},
		"name a number":   {`{"abi":1,"name":7,"version":"1"}`, "name must be a text, not the number 7"},
		"agents no list":  {said(`"agents":{}`), "agents must be a list, not an object"},
		"agent no object": {said(`"agents":[null]`), "agents[0] must be an object, not null"},
		"roles no texts":  {said(`"agents":[{"name":"a","roles":["x",null]}]`), "agents[0].roles[1] must be a text, not null"},
		"flag no flag":    {said(`"requests":[{"allow":"kv","reason":"r","optional":"no"}]`), "requests[0].optional must be true or false, not a text"},
		"text a flag":     {said(`"actions":[{"name":true}]`), "actions[0].name must be a text, not true"},

		"no name":         {`{"abi":1,"version":"1"}`, "mandatory"},
		"no version":      {`{"abi":1,"name":"a"}`, "mandatory"},
		"forging name":    {`{"abi":1,"name":"a]\nsource = \"exec:./evil\"","version":"1"}`, `name "a]\nsource = \"exec:./evil\"" does not match ^[a-z0-9]`},
		"name in capital": {`{"abi":1,"name":"A","version":"1"}`, "does not match"},
		"long name":       {`{"abi":1,"name":"` + strings.Repeat("a", 20_000) + `","version":"1"}`, `a"… (20000 bytes) does not match`},
		"version lines":   {`{"abi":1,"name":"a","version":"1\n2"}`, `version "1\n2" is not`},
		"version beyond":  {`{"abi":1,"name":"a","version":"1\u2028"}`, `version "1\u2028" is not`},
		"long version":    {`{"abi":1,"name":"a","version":"` + strings.Repeat("1", 65) + `"}`, "is not 1 to 64 printable"},
		"NUL":             {said(`"description":"a\u0000"`), "description holds the character U+0000, which has no place in it"},
		"escape":          {said(`"agents":[{"name":"a","description":"\u001b[2J"}]`), "agents[0].description holds the character U+001B"},
		"line separator":  {said(`"actions":[{"name":"a","description":"a\u2028b"}]`), "actions[0].description holds the character U+2028"},
		"half a pair":     {said(`"description":"\ud800"`), "description holds the character U+FFFD"},
		"long":            {said(`"description":"` + strings.Repeat("x", MaxDescription+1) + `"`), "description has 16385 bytes, at most 16384"},
		"agent of lines":  {said(`"agents":[{"name":"a\nb"}]`), "agents[0].name holds the character U+000A"},
		"role of lines":   {said(`"agents":[{"name":"a","roles":["b\r"]}]`), "agents[0].roles[0] holds the character U+000D"},
		"id of lines":     {said(`"agents":[{"name":"a","capabilities":[{"id":"a\nb"}]}]`), "agents[0].capabilities[0].id holds"},
		"long timeout":    {said(`"actions":[{"name":"a","timeout":"` + strings.Repeat("1", 129) + `"}]`), "actions[0].timeout has 129 bytes"},
		"bad action":      {said(`"actions":[{"name":"A b"}]`), `actions[0].name "A b" does not match`},
		"silent request":  {said(`"requests":[{"allow":"http"}]`), "requests[0] lacks one"},
		"reason of lines": {said(`"requests":[{"allow":"http","reason":"a\nb"}]`), "requests[0].reason holds the character U+000A"},
		"value of lines":  {said(`"requests":[{"allow":"http","value":[1,"a\nb"],"reason":"r"}]`), "requests[0].value holds the character U+000A"},
	} {
		d, err := ParseDescriptor([]byte(c.raw))
		if err == nil || d != nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\n\u2028") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := ParseDescriptor([]byte(`{"abi":2}`)); !errors.Is(err, ErrVersion) {
		t.Errorf("a newer descriptor: %v", err)
	}
}

func TestParseTurnResult(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, state, notes, fault string }{
		{raw: `{}`},
		{raw: ` {"state":{"a":1.50,"a":2},"future":0} `, state: `{"a":1.50,"a":2}`},
		{raw: `{"state":null,"notes":["x","y"]}`, state: `null`, notes: "x y"},
		{raw: `{"notes":null}`},
		{raw: `[]`, fault: "must be an object, not a list"},
		{raw: `null`, fault: "must be an object, not null"},
		{raw: `{}{}`, fault: "not JSON: invalid character '{' after top-level value"},
		{raw: `{"state":1,"state":2}`, fault: "state is there twice"},
		{raw: `{"State":1}`, fault: "State must be written state"},
		{raw: `{"notes":"x"}`, fault: "notes must be a list, not a text"},
		{raw: `{"notes":[["x"]]}`, fault: "notes[0] must be a text, not a list"},
		{raw: "{\"state\":\"\xff\"}", fault: "not UTF-8"},
		{raw: `{"state":`, fault: "not JSON: unexpected end of JSON input"},
	} {
		r, err := ParseTurnResult([]byte(c.raw))
		if (err == nil) != (c.fault == "") || err != nil && err.Error() != c.fault {
			t.Errorf("%s: %v, want %q", c.raw, err, c.fault)
		}
		if err == nil && (string(r.State) != c.state || strings.Join(r.Notes, " ") != c.notes) {
			t.Errorf("%s: %s %q", c.raw, r.State, r.Notes)
		}
	}
}

func FuzzParseDescriptor(f *testing.F) {
	f.Add([]byte(`{"abi":1,"name":"a","version":"1","actions":[{"name":"a_b","description":"d","parameters":{}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := ParseDescriptor(raw)
		if err != nil {
			return
		}
		again, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseDescriptor(again); err != nil {
			t.Errorf("what was accepted is refused when written again: %v", err)
		}
	})
}

package conform_test

import (
	"slices"
	"strings"
	"testing"

	"skep/host/internal/conform"
	"skep/host/internal/turn/wasm"
)

const bad = "nonsense"

// described makes an agent that does nothing, with a descriptor.
func described(section string) []byte {
	b := guest()
	b.custom("skep.descriptor", section)
	return b.agent(ok)
}

// asking makes one that asks for a grant it could do without.
func asking(allow, value string) []byte {
	return described(`{"abi":1,"name":"a","version":"1","requests":[{"allow":"` + allow + `","value":` + value + `,"reason":"r","optional":true}]}`)
}

// faults are guests with one fault each, and the check that must find it.
var faults = []struct {
	name, check, text string
	wasm              []byte
}{
	{"traps on DENIED", "errors", "with DENIED of every op: trap",
		guest().at(0, request).agent(mail(), i64(-2), same64, when(unreachable), ok)},
	{"asks again without end", "errors", "with UNAVAILABLE of every op: called the host 1000 times",
		guest().at(0, request).agent(op(0x03, 0x40), mail(), i64(-4), same64, op(0x0d, 0), op(0x0b), ok)},
	{"overruns a buffer for the input", "large-input", "params of 2 MiB",
		guest().agent(i32(8192), get(0), add, i32(1), store8, ok)},
	{"takes the length for what is there", "large-answers", "trap",
		guest().at(0, request).agent(mail(), set(2), i32(4096), get(2), wrap, add, load8, drop, ok)},
	{"goes on when called off", "cancellation", "in the middle of op 1 (mail): cancelled",
		guest().at(0, request).agent(mail(), i64(-6), same64, when(forever), ok)},
	{"writes no turn result", "turns", "bad output", guest().at(0, bad).agent(write(0, len(bad)), ok)},
	{"says it has no turn", "turns", "not implemented", guest().agent(i32(2))},
	{"asks in no JSON", "turns", "no JSON",
		guest().at(0, strings.ReplaceAll(request, `"`, `'`)).agent(mail(), drop, ok)},
	{"stumbles over a new member", "unknown-members", "with members added to the input as trap",
		guest().agent(i32(0), i32(0), i32(4), callf(inputRead), drop, i32(3), load8, i32('g'), op(0x47), when(unreachable), ok)},
	{"never starts", "start", "fuel", func() []byte {
		b := guest()
		b.fn("_initialize", "", "", "", forever)
		return b.agent(ok)
	}()},
	{"describes itself in two ways", "descriptor", "is not what skep_describe writes", func() []byte {
		const other = `{"abi":1,"name":"another","version":"1"}`
		b := guest().at(0, other)
		b.fn("skep_describe", "", "i", "", write(0, len(other)), ok)
		return b.agent(ok)
	}()},
	{"cannot describe itself", "descriptor", "skep_describe ends as trap", func() []byte {
		b := guest()
		b.fn("skep_describe", "", "i", "", unreachable)
		return b.agent(ok)
	}()},
	{"bad schema", "descriptor", "the parameters of action a are no JSON Schema", described(
		`{"abi":1,"name":"a","version":"1","actions":[{"name":"a","description":"d","parameters":{"type":"text"}}]}`)},
	{"no schema", "descriptor", "has no parameters", described(
		`{"abi":1,"name":"a","version":"1","actions":[{"name":"a","description":"d"}]}`)},
	{"action without words", "descriptor", "has no description", described(
		`{"abi":1,"name":"a","version":"1","actions":[{"name":"a","parameters":{}}]}`)},
	{"bad timeout", "descriptor", `timeout of action a is "soon"`, described(
		`{"abi":1,"name":"a","version":"1","actions":[{"name":"a","description":"d","parameters":{},"timeout":"soon"}]}`)},
	{"two of a name", "descriptor", "agent a is there twice", described(
		`{"abi":1,"name":"a","version":"1","agents":[{"name":"a"},{"name":"a"}]}`)},
	{"a name with a space", "descriptor", "cannot be an address", described(
		`{"abi":1,"name":"a","version":"1","agents":[{"name":"a b"}]}`)},
	{"bad capability", "descriptor", "has no id", described(
		`{"abi":1,"name":"a","version":"1","agents":[{"name":"a","capacity":-1,"capabilities":[{"input_schema":[]}]}]}`)},
	{"bad scope", "descriptor", "the request for kv", described(
		`{"abi":1,"name":"a","version":"1","requests":[{"allow":"kv","value":"all","reason":"r","optional":true}]}`)},
	{"a bad scope among others", "descriptor", "the request for kv", asking("kv", `["agent","{params}"]`)},
	{"no reference to params", "descriptor", `names "{params.}": it must be as in`, asking("http", `["{params.}"]`)},
	{"bad hosts", "descriptor", "the request for http", described(
		`{"abi":1,"name":"a","version":"1","requests":[{"allow":"http","value":"x","reason":"r","optional":true}]}`)},
	{"no hosts", "descriptor", "not a list of texts", asking("http", `[]`)},
	{"a host twice", "descriptor", "twice", asking("http", `["https://a.b","https://a.b"]`)},
	{"hosts without a scheme", "descriptor", `names "*": it must be as in`, asking("http", `["*"]`)},
	{"a scheme of files", "descriptor", `"file:///etc": it must be as in`, asking("http", `["file:///etc"]`)},
	{"credentials in a host", "descriptor", "must not hold credentials", asking("http", `["https://user:word@api.example.com"]`)},
	{"a query in a host", "descriptor", "a query or a fragment", asking("http", `["https://api.example.com/?x=1"]`)},
	{"a strange method", "descriptor", `"get" is not a method`, asking("http", `["get https://api.example.com"]`)},
	{"a star in a host", "descriptor", `"api.*.com" is no host`, asking("http", `["https://api.*.com"]`)},
	{"no host", "descriptor", `"" is no host`, asking("http", `["https:///v1"]`)},
	{"a port too high", "descriptor", `"70000" is no port`, asking("http", `["https://a.b:70000"]`)},
	{"a secret with a space", "descriptor", `names "my key": a name matches`, asking("secrets", `["my key"]`)},
	{"a model without a name", "descriptor", "a name matches", asking("llm", `["-"]`)},
	{"a guest in name only", "vectors", "echo", described(`{"abi":1,"name":"conform","version":"1"}`)},
}

// Each faulty guest fails the check made for its fault, and no other.
func TestFaultyGuestsFail(t *testing.T) {
	t.Parallel()
	for _, tt := range faults {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := tried(t, tt.wasm, wasm.Options{})
			for _, c := range r.Checks {
				if (c.Result == conform.Fail) != (c.Name == tt.check) {
					t.Errorf("%s: %s: %s %q", c.Name, c.Result, c.Detail, c.Problems)
				}
				if c.Name == tt.check && !strings.Contains(strings.Join(c.Problems, "\n"), tt.text) {
					t.Errorf("problems %q, want %q", c.Problems, tt.text)
				}
			}
			if r.Failed != 1 {
				t.Errorf("%d failed", r.Failed)
			}
		})
	}
}

// notable are guests with nothing wrong and something to say.
var notable = []struct {
	name, check, text string
	wasm              []byte
}{
	{"an id from the image", "randomness", "take it from random_get", func() []byte {
		b := guest().at(0, `{"notes":["`).at(43, `"]}`)
		// Sixteen random bytes become thirty-two digits, of four kinds.
		b.fn("_initialize", "", "", "i", i32(11), i32(32), callf(randomGet), drop,
			op(0x03, 0x40),
			i32(11), get(0), add, i32(11), get(0), add, load8, i32(3), op(0x71), i32('a'), add, store8,
			get(0), i32(1), add, tee(0), i32(32), op(0x49), op(0x0d, 0),
			op(0x0b))
		return b.agent(write(0, 46), ok)
	}()},
	{"an export nobody knows", "contract", "skep_wram", func() []byte {
		b := guest()
		b.fn("skep_wram", "", "i", "", ok)
		return b.agent(ok)
	}()},
	{"a request nobody knows", "descriptor", `it asks for "moon"`, described(
		`{"abi":1,"name":"a","version":"1","requests":[{"allow":"moon","reason":"r","optional":true}]}`)},
	{"an agent that always fails", "turns", "no turn was committed", guest().agent(i32(1))},
	{"an agent that mails everything", "unknown-members", "with members added to the input op 1 (mail) says something else:\nusually mail {", guest().agent(
		i32(0), i32(0), get(0), callf(inputRead), drop,
		i32(10), i32(0), get(0), i32(32768), i32(1024), callf(call), drop, ok)},
	{"an agent that passes on everything", "unknown-members", "with members added to the input the turn result says something else:\nusually {", guest().agent(
		i32(0), i32(0), get(0), callf(inputRead), drop, i32(0), get(0), callf(outputWrite), drop, ok)},
}

func TestNotes(t *testing.T) {
	t.Parallel()
	for _, tt := range notable {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := tried(t, tt.wasm, wasm.Options{})
			i := slices.IndexFunc(r.Checks, func(c conform.Verdict) bool { return c.Name == tt.check })
			if c := r.Checks[i]; c.Result != conform.Note || !strings.Contains(strings.Join(c.Problems, "\n"), tt.text) {
				t.Errorf("%s: %s %q, want a note: %q", c.Name, c.Result, c.Problems, tt.text)
			}
			for _, c := range r.Checks {
				if c.Result == conform.Fail {
					t.Errorf("%s: %q", c.Name, c.Problems)
				}
			}
		})
	}
}

// A request that a host takes is no fault.
func TestGoodRequests(t *testing.T) {
	t.Parallel()
	for _, wasmBytes := range [][]byte{
		asking("http", `["https://api.example.com","GET,POST https://*.example.com:8443/v1","https://*","http://[::1]:80","http://127.0.0.1","http://localhost/"]`),
		asking("secrets", `["weather_key","a-2"]`),
		asking("llm", `["default"]`),
		asking("kv", `"instance"`),
		asking("kv", `["agent","{params.scope}"]`),
		asking("http", `["{params.base}","GET {params.servers.first}"]`),
		asking("http", `null`),
	} {
		passes(t, tried(t, wasmBytes, wasm.Options{}))
	}
}

package schema

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"skep/spec/mail"
)

// list is a JSON list of n times the same.
func list(one string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]"
}

// A small schema and a small value can keep the library busy for hours, and make it
// list millions of faults. Both may be a guest's.
func TestEffort(t *testing.T) {
	short := func(of string) string { return `{"properties":{"a":` + of + `}}` }
	text := func(n int) string { return `"` + strings.Repeat("abcdefghij", n/10) + `!"` }
	nested := strings.Repeat(`{"uniqueItems":true,"items":`, 40) + `{}` + strings.Repeat(`}`, 40)
	for name, c := range map[string]struct{ schema, value string }{
		"parts for each item":     {short(`{"items":{"allOf":` + list(`{"type":"string"}`, 1700) + `}}`), list("1", 1000)},
		"choices for each item":   {short(`{"items":{"oneOf":` + list(`{"const":1}`, 1700) + `}}`), list("2", 1000)},
		"choices for each member": {short(`{"additionalProperties":{"anyOf":` + list(`{"type":"null"}`, 1700) + `}}`), `{` + members(100) + `}`},
		"long faults":             {short(`{"items":{"const":"` + strings.Repeat("x", 30_000) + `"}}`), list("1", 1000)},
		"missing members":         {short(`{"items":{"required":` + list(`"x"`, 1) + `,"allOf":` + list(`{"required":["a","b","c"]}`, 1000) + `}}`), list("{}", 100)},
		"a value read often":      {short(`{"allOf":` + list(`{"const":1}`, 1700) + `}`), list("1", 10_000)},
		"lists in lists":          {short(nested), strings.Repeat("[", 40) + list(text(100), 10_000) + strings.Repeat("]", 40)},
		"a pattern":               {short(`{"pattern":"^(?:(?:a?b?c?d?e?){10}){10}$"}`), text(1 << 20)},
		"members":                 {short(`{"additionalProperties":{}}`), `{` + members(60_000) + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := CompileParams("a", []byte(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Check([]byte(`{"a":` + c.value + `}`)); !errors.Is(err, mail.ErrLimit) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// members are the members of an object, n of them.
func members(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Quote(strconv.Itoa(i)) + ":1"
	}
	return strings.Join(all, ",")
}

// What programs really take is none of that.
func TestEffortOfHonestCalls(t *testing.T) {
	for name, c := range map[string]struct{ schema, value string }{
		"a long text":   {`{"properties":{"a":{"type":"string","maxLength":4000000}}}`, `"` + strings.Repeat("x", 3<<20) + `"`},
		"a checked one": {`{"properties":{"a":{"type":"string","pattern":"^[a-z]+$"}}}`, `"` + strings.Repeat("x", 2<<20) + `"`},
		"many items": {`{"properties":{"a":{"items":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"}},"required":["x","y"]}}}}`,
			list(`{"x":1,"y":2}`, 2000)},
		"many choices": {`{"properties":{"a":{"enum":` + list(`"one"`, 1) + `}}}`, `"one"`},
		"letters":      {`{"properties":{"a":{"pattern":"^\\pL{1,999}$"}}}`, `"Zürich"`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := CompileParams("a", []byte(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Check([]byte(`{"a":` + c.value + `}`)); err != nil {
				t.Error(err)
			}
		})
	}
}

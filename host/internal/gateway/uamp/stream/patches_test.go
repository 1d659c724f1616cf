package stream_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/stream"
)

// TestPatches (U-067): patches change a document in the order in which they come, within limits.
func TestPatches(t *testing.T) {
	t.Parallel()
	double := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf(`{"patch":[{"op":"copy","from":"/a","path":"/a/c%d"}]}`, i))
		}
		return list
	}
	deep := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf(`{"patch":[{"op":"add","path":"%s/a","value":{}}]}`, strings.Repeat("/a", i)))
		}
		return list
	}
	alternate := func(n int, patch string) (list []string) {
		for i := range n {
			list = append(list, `{"merge":{}}`, strings.ReplaceAll(patch, "N", fmt.Sprint(i)))
		}
		return list
	}
	large := `{"merge":{"a":"` + strings.Repeat("a", 1<<10) + `"}}`
	for name, c := range map[string]struct {
		payloads []string
		want     string
		code     envelope.Code
	}{
		"nothing":            {nil, "", ""},
		"JSON Patch":         {[]string{`{"patch":[{"op":"add","path":"/a","value":[1]}]}`, `{"patch":[{"op":"add","path":"/a/-","value":2},{"op":"test","path":"/a/1","value":2}]}`}, `{"a":[1,2]}`, ""},
		"merge patch":        {[]string{`{"merge":{"a":1,"b":{"c":2}}}`, `{"merge":{"a":null}}`}, `{"b":{"c":2}}`, ""},
		"both":               {[]string{`{"merge":{"a":1}}`, `{"patch":[{"op":"move","from":"/a","path":"/b"}]}`, `{"merge":{"c":3}}`, `{"patch":[{"op":"replace","path":"/c","value":4}]}`}, `{"b":1,"c":4}`, ""},
		"a whole document":   {[]string{`{"patch":[{"op":"replace","path":"","value":[7]}]}`}, `[7]`, ""},
		"another form":       {[]string{`{"ops":[1]}`, "null"}, "", ""},
		"no list":            {[]string{`{"patch":{"op":"add"}}`}, "", envelope.Malformed},
		"an unknown place":   {[]string{`{"patch":[{"op":"replace","path":"/a","value":1}]}`}, "", envelope.Malformed},
		"an unknown op":      {[]string{`{"patch":[{"op":"double","path":"/a"}]}`}, "", envelope.Malformed},
		"a test that fails":  {[]string{`{"patch":[{"op":"test","path":"","value":1}]}`}, "", envelope.Malformed},
		"no path":            {[]string{`{"patch":[{"op":"add","value":1}]}`}, "", envelope.Malformed},
		"an index too large": {[]string{`{"patch":[{"op":"add","path":"/a","value":[]},{"op":"add","path":"/a/9","value":1}]}`}, "", envelope.Malformed},
		"too many":           {[]string{`{"merge":{"a":"` + strings.Repeat("a", 4<<10) + `"}}`}, "", envelope.TooLarge},
		"copies of copies":   {append([]string{`{"merge":{"a":{"b":1}}}`}, double(40)...), "", envelope.Malformed},
		"a few copies":       {append([]string{`{"merge":{"a":{"b":1}}}`}, double(2)...), `{"a":{"b":1,"c0":{"b":1},"c1":{"b":1,"c0":{"b":1}}}}`, ""},
		"copies in turns":    {append([]string{large}, alternate(8, `{"patch":[{"op":"copy","from":"/a","path":"/cN"}]}`)...), "", envelope.TooLarge},
		"many changes":       {alternate(130, `{"patch":[]}`), "", envelope.TooLarge},
		"a copy of it all":   {[]string{`{"patch":[{"op":"copy","from":"","path":"/a"}]}`}, "", envelope.Malformed},
		"levels":             {deep(40), strings.Repeat(`{"a":`, 40) + "{}" + strings.Repeat("}", 40), ""},
	} {
		p := stream.NewPatches(4 << 10)
		var err error
		for _, payload := range c.payloads {
			if err == nil {
				err = p.Add(json.RawMessage(payload))
			}
		}
		var got json.RawMessage
		if err == nil {
			got, err = p.Document()
		}
		var f *envelope.Fault
		if c.code == "" && err != nil || c.code != "" && (!errors.As(err, &f) || f.Code != c.code) || string(got) != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// FuzzPatches: no payload of a partner breaks more than its stream.
func FuzzPatches(f *testing.F) {
	for _, seed := range []string{`{"patch":[{"op":"add","path":"/a","value":null}]}`, `{"merge":null}`, `{"patch":[null]}`, `{"patch":[{"op":"copy","from":"/a/0","path":"/-"}]}`} {
		f.Add(seed, `{"patch":[{"op":"remove","path":"/a"}]}`)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		p := stream.NewPatches(1 << 10)
		for _, payload := range []string{first, second} {
			if json.Valid([]byte(payload)) && p.Add(json.RawMessage(payload)) != nil {
				return
			}
		}
		if got, err := p.Document(); err == nil && got != nil && !json.Valid(got) {
			t.Errorf("%s and %s make %s", first, second, got)
		}
	})
}
